"""What another runner can't confirm puts a runner in doubt, and slow baselines are mended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_runner.data import codec
from gpu_runner.data.evaluation import WorkloadResult
from gpu_runner.data.event import EventKind
from gpu_runner.data.integrity import Audit
from runs_app.core.runners.events import Sender, record_event
from runs_app.models import Evaluation, RunnerFlag
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, end_audit, ranked, under_way

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs", "believed")]


def measured(time_ns: float, unlisted_ns: float, eager_ns: float = 2000.0) -> dict[str, object]:
    """Workloads with these times."""
    baselines = {"eager": make.make_measurement(eager_ns)}
    times = {"n256": (time_ns, False), make.HIDDEN_WORKLOAD: (unlisted_ns, True)}
    workloads = (
        make.make_workload_result(
            name=name, hidden=hidden, measurement=make.make_measurement(ns), baselines=baselines
        )
        for name, (ns, hidden) in times.items()
    )
    return {"latency_ns": time_ns, "workloads": tuple(workloads)}


def audited_by(token: str, evaluation: Evaluation, **result: object) -> list[str]:
    """Let a runner of that token end the audit of a place; what is then held against "test"."""
    audit = under_way(evaluation)
    other = make.make_runner(token=make.make_runner_token(name=token))
    make.hand_over(audit)
    Evaluation.objects.filter(pk=audit.pk).update(runner=other)
    fields = {"audit": Audit(checks=(MEMCHECK,), required=(MEMCHECK.name,)), **result}
    audit.refresh_from_db()
    document = codec.encode(make.make_result(audit, **fields))
    event = make.make_event(audit, kind=EventKind.FINISHED, payload={"result": document}, seq=2)
    record_event(event=event, sender=Sender(token=other.token), now=make.NOW)
    flags = RunnerFlag.objects.filter(token__name="test")
    assert all(each.evaluation_id == evaluation.pk for each in flags)
    assert flags.count() == RunnerFlag.objects.count()
    return [each.reason for each in flags]


@pytest.mark.parametrize(
    ("audit", "words"),
    [
        (measured(1450.0, 1450.0), []),
        (measured(400.0, 400.0), []),
        (measured(1800.0, 1000.0), ["1.80× the time that test reported for the same kernel on"]),
        (measured(1000.0, 1800.0), ["1.80× the time that test reported for the same kernel on un"]),
    ],
)
def test_who_is_not_confirmed_is_in_doubt(audit: dict[str, object], words: list[str]) -> None:
    evaluation = ranked(result=measured(1000.0, 1000.0))
    said = audited_by("other", evaluation, **audit)
    assert len(said) == len(words)
    assert all(word in text for word, text in zip(words, said, strict=True))


def test_nobody_speaks_against_a_runner_of_its_own_token() -> None:
    evaluation = ranked(result=measured(1000.0, 1000.0))
    assert audited_by("test", evaluation, **measured(9000.0, 9000.0)) == []


def with_eager(time_ns: float) -> tuple[WorkloadResult, ...]:
    """The usual workloads with this time of the eager baseline."""
    found = {"eager": make.make_measurement(time_ns), "compiled": make.make_measurement(1500.0)}
    best = min(time_ns, 1500.0) / 1000.0
    speedups = {"eager": time_ns / 1000.0, "compiled": 1.5, "best": best}
    listed = make.make_workload_result(baselines=found, speedups=speedups)
    hidden = replace(listed, name=make.HIDDEN_WORKLOAD, parameters={"N": 1777}, hidden=True)
    return listed, hidden


@pytest.mark.parametrize(
    ("eager_ns", "score"), [(1200.0, 1.2), (1450.0, 1.45), (1900.0, 1.5), (3000.0, 1.5)]
)
def test_an_audit_mends_baselines_that_were_slow(eager_ns: float, score: float) -> None:
    """A runner with slow baselines would flatter everybody whom it measures."""
    evaluation = ranked()
    assert evaluation.score == pytest.approx(1.5)
    other = make.make_runner(token=make.make_runner_token(name="other"))
    Evaluation.objects.filter(pk=evaluation.pk).update(runner=other)
    audit = end_audit(evaluation, MEMCHECK, workloads=with_eager(eager_ns))
    assert (audit.state, evaluation.score) == ("passed", pytest.approx(score))
    is_faster = eager_ns < 1900.0  # which is within the noise
    assert ("it measured faster times for eager" in audit.reason) is is_faster
    theirs = RunnerFlag.objects.filter(reason__contains="measured faster baselines")
    assert theirs.exists() is is_faster
    stored = evaluation.result.data
    assert stored.workloads[1].baselines["eager"].time_ns == (eager_ns if is_faster else 2000.0)
