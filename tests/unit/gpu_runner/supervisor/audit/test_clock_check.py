"""An audit verifies no time that the supervisor's clock is too vague to confirm."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_runner.data.evaluation import Measurement, WorkloadResult
from gpu_runner.data.integrity import AuditState, OutsideTime
from gpu_runner.supervisor.audit.audit import clock_check


@pytest.mark.parametrize(
    ("time_ns", "error_ns", "state"),
    [
        (100e3, 49e3, AuditState.PASSED),
        (100e3, 51e3, AuditState.INCONCLUSIVE),
        (1e3, 2e3, AuditState.PASSED),  # less than any clock of ours can tell
        (100e3, None, AuditState.INCONCLUSIVE),  # it was not looked at
    ],
)
def test_a_vague_clock_verifies_no_time(
    time_ns: float, error_ns: float | None, state: AuditState
) -> None:
    measured = Measurement(time_ns=time_ns, low_ns=time_ns, high_ns=time_ns, calls=9)
    outside = None if error_ns is None else OutsideTime(bound_ns=time_ns, error_ns=error_ns)
    result = WorkloadResult(
        name="n1", parameters={}, hidden=False, measurement=measured, outside=outside
    )
    found = clock_check([result])
    assert (found.name, found.state) == ("clock", state)
    assert ("n1" in found.reason) == (state is AuditState.INCONCLUSIVE)
    hidden = dataclasses.replace(result, hidden=True)
    assert clock_check([hidden]).state is AuditState.PASSED
