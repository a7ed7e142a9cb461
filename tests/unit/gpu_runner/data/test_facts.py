"""Facts as documents: what they refuse, and audits without any."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.facts import Facts
from gpu_runner.data.integrity import Audit


def test_an_audit_without_facts_is_written_as_before() -> None:
    document = codec.encode(Audit(checks=()))
    assert "facts" not in document
    assert codec.decode(Audit, document).facts is None


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"energy_joules": 1.0}, "energy_error"),
        ({"energy_error": 0.1}, "energy_error"),
        ({"scratch_bytes": -1}, "scratch_bytes"),
        ({"energy_joules": float("inf"), "energy_error": 0.1}, "energy_joules"),
        ({"energy_joules": float("nan"), "energy_error": 0.1}, "energy_joules"),
        ({"said": {"weather": "fine"}}, "said.weather"),
    ],
)
def test_impossible_facts_are_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(DataError) as caught:
        Facts(**wrong)
    assert caught.value.field == field
