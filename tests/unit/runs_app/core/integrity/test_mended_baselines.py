"""An audit measures baselines anew, and mends those that a place rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_runner.data.evaluation import WorkloadResult
from runs_app.models import Evaluation, RunnerFlag
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, end_audit, ranked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def with_eager(time_ns: float) -> tuple[WorkloadResult, ...]:
    """The usual workloads with this time of the eager baseline."""
    found = {"eager": make.make_measurement(time_ns), "compiled": make.make_measurement(1500.0)}
    best = min(time_ns, 1500.0) / 1000.0
    speedups = {"eager": time_ns / 1000.0, "compiled": 1.5, "best": best}
    listed = make.make_workload_result(baselines=found, speedups=speedups)
    return (
        listed,
        replace(listed, name=make.HIDDEN_WORKLOAD, parameters={"N": 1777}, hidden=True),
    )


@pytest.mark.parametrize(
    ("eager_ns", "score"), [(1200.0, 1.2), (1450.0, 1.45), (2000.0, 1.5), (3000.0, 1.5)]
)
def test_an_audit_mends_baselines_that_were_slow(eager_ns: float, score: float) -> None:
    """A runner with slow baselines would flatter everybody whom it measures."""
    evaluation = ranked()
    assert evaluation.score == pytest.approx(1.5)
    other = make.make_runner(token=make.make_runner_token(name="other"))
    Evaluation.objects.filter(pk=evaluation.pk).update(runner=other)
    audit = end_audit(evaluation, MEMCHECK, workloads=with_eager(eager_ns))
    assert (audit.state, evaluation.score) == ("passed", pytest.approx(score))
    is_faster = eager_ns < 2000.0
    assert ("it found eager faster" in audit.reason) is is_faster
    theirs = RunnerFlag.objects.filter(reason__contains="measured faster baselines")
    assert theirs.exists() is is_faster
    stored = evaluation.result.data
    assert stored.workloads[1].baselines["eager"].time_ns == min(eager_ns, 2000.0)


def test_baselines_within_the_noise_stay() -> None:
    evaluation = ranked()
    audit = end_audit(evaluation, MEMCHECK, workloads=with_eager(1900.0))
    assert audit.reason == "1 check passed"
    assert evaluation.result.data.workloads[0].baselines["eager"].time_ns == 2000.0
