"""Stored events, in the form in which sockets show them."""

from __future__ import annotations

from runs_app.core.messaging import broadcast
from runs_app.models import Evaluation, EvaluationEvent

_QUEUE_REPLAY_LIMIT = 500


def events(evaluation: Evaluation, since: int = 0) -> list[dict[str, object]]:
    """What happened to the evaluation after event number `since`, in order."""
    hidden = evaluation.task_version.hidden_names
    rows = evaluation.events.filter(position__gt=since).order_by("position")
    return [broadcast.event_message(row, hidden) for row in rows]


def logs_of_lost(evaluation: Evaluation) -> list[tuple[int, str]]:
    """By attempt: what runners said of attempts that they could not end, for admins."""
    rows = evaluation.events.filter(kind="lost", payload__has_key="log").order_by("position")
    return [(row.attempt, str(row.payload["log"])) for row in rows]


def queue_events(since: int) -> list[dict[str, object]]:
    """What happened to all queues after event number `since`: at most the newest 500, in order."""
    rows = (
        EvaluationEvent.objects.filter(pk__gt=since, kind__in=broadcast.LIFECYCLE)
        .select_related("evaluation__submission", "evaluation__task_version__task")
        .defer(
            "evaluation__task_version__document",
            "evaluation__submission__source",
            "evaluation__submission__files",
        )
        .order_by("-pk")[:_QUEUE_REPLAY_LIMIT]
    )
    return [broadcast.queue_message(row, row.evaluation) for row in reversed(rows)]
