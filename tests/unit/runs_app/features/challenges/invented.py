"""A challenge over two tasks, and the steps of an entry, with all that a test does not ask for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from gpu_runner.data.verdict import Verdict
from runs_app.features.challenges.attempts import submit_for_entry
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.services import enter, make_challenge
from runs_app.models import Evaluation
from tasks_app.models import Task
from tests import factories as make

TASKS = ("scale", "scale2")


def make_tasks() -> None:
    """The two tasks, unless they are there."""
    for name in TASKS:
        if not Task.objects.filter(slug=name).exists():
            make.make_task_version(name=name)


def new_challenge(**overrides: Any) -> Challenge:
    """Open for a day from `NOW`: two tasks, three evaluations on each, an hour, ten dollars."""
    make.make_cpu()
    if "tasks" not in overrides:
        make_tasks()
    fields: dict[str, Any] = {
        "name": "Autumn",
        "tasks": TASKS,
        "device": "cpu",
        "evaluations": 3,
        "wall_time_s": 3600,
        "usd": 10.0,
        "starts_at": make.NOW,
        "ends_at": make.NOW + timedelta(days=1),
        "now": make.NOW,
    }
    if "user" not in overrides:
        fields["user"] = make.make_admin()
    return make_challenge(**{**fields, **overrides})


def new_entry(challenge: Challenge, user: User, **overrides: Any) -> Entry:
    """An entry of the agent "evolver"."""
    fields = {"agent": "evolver", "now": make.NOW}
    return enter(challenge=challenge, user=user, **{**fields, **overrides})[0]


def try_once(entry: Entry, **overrides: Any) -> Evaluation:
    """A queued evaluation of a source of its own in the mode quick."""
    fields: dict[str, Any] = {
        "task": "scale",
        "source": f"{make.SOURCE}// {Evaluation.objects.count()}\n",
        "language": "cpp",
        "direction": "forward",
        "device": "",
        "mode": "quick",
        "agent": "",
        "language_model": "",
        "now": make.NOW,
    }
    return submit_for_entry(entry=entry, **{**fields, **overrides}).evaluations.get()


def end(evaluation: Evaluation, verdict: Verdict = Verdict.CORRECT, **result: Any) -> Evaluation:
    """Its runner has reported this."""
    make.finish(evaluation, verdict=verdict, **result)
    evaluation.refresh_from_db()
    return evaluation


def tried(entry: Entry, time_ns: float = 1000.0, **overrides: Any) -> Evaluation:
    """A correct evaluation of that time."""
    return end(try_once(entry, **overrides), latency_ns=time_ns)
