"""What a result may say of a workload."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.codec import DEEPEST, DataError, decode, encode
from gpu_runner.data.evaluation import Measurement, WorkloadResult


def workload(parameter: Any) -> dict[str, Any]:
    document: dict[str, Any] = encode(WorkloadResult(name="n", parameters={}, hidden=False))
    return document | {"parameters": {"N": parameter}}


def test_parameters_are_not_nested_deeply() -> None:
    deep: Any = 1
    for _ in range(DEEPEST - 1):
        deep = [deep]
    assert decode(WorkloadResult, workload(deep)).parameters == {"N": deep}
    with pytest.raises(DataError, match=f"parameters: has more than {DEEPEST} levels"):
        decode(WorkloadResult, workload([deep]))


def test_an_interval_within_the_clocks_resolution_is_no_noise() -> None:
    measured = Measurement(time_ns=1000.0, low_ns=900.0, high_ns=1100.0, calls=9)
    assert (measured.noise(100.0), measured.noise(99.0)) == (0.0, 0.1)
