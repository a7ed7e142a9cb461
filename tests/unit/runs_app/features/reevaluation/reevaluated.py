"""Ranked evaluations that are to be made again, for tests."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Verdict
from runs_app.features.reevaluation.forms import ReevaluationForm
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.features.reevaluation.plan import Choice, Plan, plan_of
from runs_app.features.reevaluation.services import reevaluate
from runs_app.models import Evaluation
from tasks_app.models import TaskVersion
from tests import factories as make


def entered(agent: str, speedup: float = 2.0, **overrides: Any) -> Evaluation:
    """A ranked evaluation of version 1 that took 40 s; correct unless told otherwise."""
    verdict = overrides.pop("verdict", Verdict.CORRECT)
    result = overrides.pop("result", {})
    if verdict is Verdict.CORRECT:
        result = {"speedups": {"best": speedup}, "latency_ns": 1000 / speedup} | result
    source = overrides.pop("source", f"// by {agent}\n{make.SOURCE}")
    evaluation = make.make_finished_evaluation(
        verdict, result=result, agent=agent, source=source, mode="ranked", **overrides
    )
    Evaluation.objects.filter(pk=evaluation.pk).update(finished_at=make.later(40))
    evaluation.refresh_from_db()
    return evaluation


def next_version(**overrides: Any) -> TaskVersion:
    """The task's next version, which is public."""
    return make.make_task_version(**{"description": "the second version", **overrides})


def chosen(version: TaskVersion, address: str = "") -> Choice:
    """The choice that an address makes on the page of the version's task."""
    version.task.refresh_from_db()
    form = ReevaluationForm(QueryDict(address), task=version.task)
    assert form.is_valid(), form.errors
    return form.choice()


def begin(version: TaskVersion, address: str = "", seconds: float = 100) -> Reevaluation:
    """Start what an address chooses."""
    choice = chosen(version, address)
    return reevaluate(
        choice=choice,
        seen=plan_of(choice).seen,
        user=make.make_admin(),
        now=make.later(seconds),
    )


def end(evaluation: Evaluation, speedup: float, seconds: float = 200) -> None:
    """Let a runner finish a queued evaluation."""
    document = make.make_result(evaluation, speedups={"best": speedup}, latency_ns=1000 / speedup)
    now = make.later(seconds)
    make.start(evaluation, now=now)
    make.send(evaluation, EventKind.FINISHED, {"result": codec.encode(document)}, seq=2, now=now)


def planned(plan: Plan) -> list[tuple[str, str]]:
    """Whose kernels are chosen, each with why it is left out; empty if it is measured."""
    return [(each.evaluation.submission.agent.name, each.left_out) for each in plan.planned]
