"""Questions about optimization runs: who sees them, what happened, and why they wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404

from runs_app.core.errors import SubmissionError
from runs_app.core.messaging import queues
from runs_app.core.queue.selectors import waiting_reason
from runs_app.models import Candidate, Evaluation, LanguageModel, Run, RunEvent, Status
from runs_app.models.runner_job import SPOOL
from runs_app.submitting.identity import the_only
from tasks_app.disclosure import sees_hidden
from tasks_app.numbers import counted
from tasks_app.people import Viewer

EVENTS_AT_ONCE = 5000
"""Events of one answer: a few hundred kilobytes once they are compressed."""
_PATIENCE = timedelta(seconds=30)
RUN_FILTERS = ("task", "device", "strategy", "status", "mine")


def visible_runs(user: Viewer) -> QuerySet[Run]:
    """The runs that `user` may see, newest first, with what lists show of them."""
    rows = Run.objects.select_related("user", "agent", "device", "task_version__task", "best")
    rows = rows.defer("problem", "task_version__document", "best__source", "best__feedback")
    if sees_hidden(user):
        return rows
    public = Q(private=False)
    return rows.filter(public | Q(user_id=user.pk) if user.pk is not None else public)


def find_run(run_id: UUID | str, user: Viewer) -> Run | None:
    """The run, or None if there is none that `user` may see."""
    try:
        return visible_runs(user).filter(pk=run_id).first()
    except ValidationError:  # it is no id
        return None


def named_run(text: str, user: Viewer) -> Run:
    """The run with this id, or with the only one that begins so; raises `Http404`."""
    run = find_run(the_only(text, visible_runs(user), "run"), user)
    if run is None:
        raise Http404(f"there is no run {text!r} that you can see")
    return run


def may_control(user: Viewer, run: Run) -> bool:
    """Whether `user` may pause, resume, stop and extend the run, and enter its candidates.

    Nobody may do that to a run of another site.
    """
    is_ours = not run.device.imported_from
    return is_ours and user.is_authenticated and (user.pk == run.user_id or sees_hidden(user))


def has_entry(run: str) -> Exists:
    """Whether the run in this column submitted a kernel: only such kernels are on boards."""
    return Exists(Candidate.objects.filter(run=OuterRef(run), entry__isnull=False))


def in_words(runs: int, tasks: int, submitted: int) -> str:
    """How many runs there were, on how many tasks, and how many submitted a kernel."""
    return f"{counted(runs, 'run')} on {counted(tasks, 'task')}, {submitted} submitted"


def filtered_runs(user: Viewer, filters: Mapping[str, str]) -> QuerySet[Run]:
    """Visible runs that fit the filters of `RUN_FILTERS`; empty values do not narrow."""
    rows = visible_runs(user)
    columns = {"task": "task_version__task__slug", "device": "device_id"}
    for name in ("task", "device", "strategy", "status"):
        if filters.get(name):
            rows = rows.filter(**{columns.get(name, name): filters[name]})
    return rows.filter(user_id=user.pk) if filters.get("mine") and user.pk is not None else rows


def run_events(run: Run, since: int = 0, limit: int = EVENTS_AT_ONCE) -> list[RunEvent]:
    """The first `limit` events after number `since`, in order."""
    return list(run.events.filter(seq__gt=since).order_by("seq")[:limit])


def run_summary(run: Run, now: datetime) -> dict[str, object]:
    """What an event tells of its run, beside itself; the keys of sockets' messages."""
    return {
        "status": run.status,
        "reason": run.reason,
        "usd": run.usd,
        "tokens": run.tokens,
        "evaluations": run.evaluations,
        "active_s": active_s(run, now),
        "best_latency_ns": run.best_latency_ns,
        "candidates": run.candidates_made,
    }


def active_s(run: Run, now: datetime) -> float:
    """Seconds that the run has searched: without pauses, and without the ranking of its best."""
    until = min(now, run.searched_at) if run.searched_at else now
    running = (until - run.resumed_at).total_seconds() if run.resumed_at else 0.0
    return run.active_s + max(running, 0.0)


def spent_by(run: Run, active_s: float) -> dict[str, float]:
    """What a run has spent, by the names of the caps."""
    spent = {"tokens": run.tokens, "evaluations": run.evaluations, "wall_time_s": active_s}
    return {"usd": run.usd or 0.0} | spent


def budgets(runs: Iterable[Run]) -> dict[UUID, dict[str, Any]]:
    """Caps of now by run, encoded: those of the latest extension, or of the start. One query."""
    caps = {run.pk: dict(run.config.get("budget") or {}) for run in runs}
    latest = extensions(caps)
    return caps | {run_id: dict(extension["budget"]) for run_id, extension in latest.items()}


def extensions(run_ids: Iterable[UUID]) -> dict[UUID, dict[str, Any]]:
    """The latest extension of each run that has one: its parameters are those of all. One query."""
    rows = RunEvent.objects.filter(run__in=list(run_ids), kind="extended").order_by("seq")
    return dict(rows.values_list("run_id", "payload"))


def find_candidate(run: Run, number: int) -> Candidate | None:
    """The run's candidate of that number, with its call and its submissions; or None."""
    rows = run.candidates.select_related("call__language_model", "submission", "entry")
    return rows.filter(number=number).first()


def run_waiting_reason(run: Run, now: datetime) -> str:
    """Why a run does not get on; empty if it does, waits for an answer, or has nothing waiting."""
    if run.status == Run.Status.PAUSED:
        unsent = run.calls.filter(status="WAITING").count()
        return f"{unsent} call(s) to language models, until the run is resumed" if unsent else ""
    if run.status != Run.Status.RUNNING:
        return ""
    evaluations = Evaluation.objects.filter(submission__run=run)
    running = evaluations.filter(status=Status.RUNNING)
    if running.exclude(runner_boot_id__startswith=SPOOL).exists():
        return ""
    if (spooled := running.first()) is not None:
        return waiting_reason(spooled, now)
    oldest = evaluations.filter(status=Status.QUEUED).order_by("queued_at", "pk").first()
    if oldest is not None:
        return waiting_reason(oldest, now)
    return _unattended(run, now)


def _unattended(run: Run, now: datetime) -> str:
    """What nobody takes up: calls that were not sent, or the run's next step."""
    long_ago = now - _PATIENCE
    waiting = run.calls.filter(status="WAITING", created_at__lt=long_ago).count()
    if waiting:
        busy = queues.has_worker(queues.CALLS_QUEUE)
        why = "all workers are busy" if busy else "no worker for calls is running"
        return f"{waiting} call(s) to language models have not been sent yet: {why}"
    asleep = (run.advanced_at or run.created_at) < long_ago
    if asleep and not queues.has_worker(queues.RUNS_QUEUE):
        return "no worker for runs is running, so its next step can't begin"
    return ""


def callable_models() -> QuerySet[LanguageModel]:
    """Language models that runs can use: those with an endpoint."""
    return LanguageModel.objects.exclude(base_url="").order_by("name")


def callable_model(name: str) -> LanguageModel:
    """The one of that name; raises `SubmissionError` if there is none that can be called."""
    model = callable_models().filter(name=name).first()
    if model is None:
        known = ", ".join(callable_models().values_list("name", flat=True)) or "none"
        raise SubmissionError(
            "model", f"{name!r} can't be called; callable language models: {known}"
        )
    return model
