"""What sockets are told, and what they have missed; the only sender to them.

Pages come from the database, so a lost message costs little.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from channels_redis.pubsub import RedisPubSubChannelLayer
from django.conf import settings
from django.db import transaction
from redis.exceptions import RedisError

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.messaging import queues
from runs_app.models import (
    Evaluation,
    EvaluationEvent,
    RunEvent,
    Runner,
    RunnerJob,
    Status,
    Submission,
)
from tasks_app.disclosure import public_payload

log = logging.getLogger(__name__)

QUEUE_GROUP = "queue"
STATUS_AFTER = {
    "queued": Status.QUEUED,
    "started": Status.RUNNING,
    "stage": Status.RUNNING,
    "lost": Status.RUNNING,
    "retried": Status.QUEUED,
    "requeued": Status.QUEUED,
    "spooled": Status.RUNNING,  # handed out in a folder, to a host that reaches no site
    "finished": Status.FINISHED,
    "cancelled": Status.CANCELLED,
    "decided": Status.FINISHED,  # a person cleared or rejected a suspicion
    "audited": Status.FINISHED,  # an audit of the submission began or ended
    "baselines": Status.FINISHED,  # baselines that were measured apart have joined the result
}
"""Kind of event -> status that the evaluation has after it."""
_LATER = ("stage", "decided", "audited", "baselines")
LIFECYCLE = tuple(kind for kind in STATUS_AFTER if kind not in _LATER)
"""Kinds of event that change the queue."""


def evaluation_group(evaluation_id: object) -> str:
    """Name of the group of sockets that watch an evaluation."""
    return f"evaluation.{evaluation_id}"


def run_group(run_id: object) -> str:
    """Name of the group of sockets that watch a run."""
    return f"run.{run_id}"


def run_message(
    event: RunEvent, summary: dict[str, object], hidden_names: tuple[str, ...]
) -> dict[str, object]:
    """What a socket shows of a run's event; `summary` is the run's state beside it."""
    return {
        "seq": event.seq,
        "kind": event.kind,
        "at": event.created_at.isoformat(),
        "payload": public_payload(event.payload, hidden_names),
        "run": summary,
    }


def event_message(event: EvaluationEvent, hidden_names: tuple[str, ...]) -> dict[str, object]:
    """What a socket shows of an event. Nobody's socket tells of hidden workloads, not an admin's.

    The log of an attempt that was lost is for admins, on pages.
    `seq` counts from 1 in each evaluation; `at` is in ISO 8601.
    """
    payload = public_payload(event.payload, hidden_names)
    payload.pop("log", None)
    return {
        "seq": event.position,
        "kind": event.kind,
        "attempt": event.attempt,
        "status": STATUS_AFTER[event.kind].value,
        "verdict": payload.get("verdict", ""),
        "stage": payload.get("stage", ""),
        "reason": payload.get("reason", ""),
        "at": event.created_at.isoformat(),
        "payload": payload,
    }


def queue_message(event: EvaluationEvent, evaluation: Evaluation) -> dict[str, object]:
    """What the queue's socket shows of an event; a private submission's names are left out.

    `ranked` names the task if this is a result that may stand on its board, else it's empty.
    """
    private = evaluation.submission.private
    verdict = "" if private else event.payload.get("verdict", "")
    is_candidate = evaluation.submission.origin == Submission.Origin.RUN
    is_ranked = evaluation.mode == Mode.RANKED and verdict == Verdict.CORRECT and not is_candidate
    return {
        "seq": event.pk,
        "kind": event.kind,
        "device": evaluation.device_id,
        "status": STATUS_AFTER[event.kind].value,
        "evaluation": None if private else str(evaluation.pk),
        "submission": None if private else str(evaluation.submission_id),
        "verdict": verdict,
        "ranked": evaluation.task_version.task.slug if is_ranked else "",
        "at": event.created_at.isoformat(),
    }


def send_event(evaluation: Evaluation, event: EvaluationEvent) -> None:
    """Tell the watchers of the evaluation, and of the queue, once the transaction is committed.

    Only then the event has its key, if many are stored together.
    """
    hidden = evaluation.task_version.hidden_names
    group = evaluation_group(evaluation.pk)
    transaction.on_commit(lambda: _send(group, event_message(event, hidden)))
    if event.kind in LIFECYCLE:
        transaction.on_commit(lambda: _send(QUEUE_GROUP, queue_message(event, evaluation)))


def send_run_event(
    event: RunEvent, summary: dict[str, object], hidden: tuple[str, ...], rows: dict[str, object]
) -> None:
    """Tell a run's watchers of an event and the rows that it changed; call it after the commit."""
    message = run_message(event, summary, hidden) | {"rows": rows}
    _send(run_group(event.run_id), message)


def send_run_progress(run_id: object, payload: dict[str, Any], at: str) -> None:
    """Tell the watchers of a run how far an answer has come. `seq` 0: nothing to replay."""
    message = {"seq": 0, "kind": "progress", "at": at, "payload": payload, "run": None}
    _send(run_group(run_id), message)


def send_runner(runner: Runner) -> None:
    """Tell the watchers of the queue that a runner changed. `seq` 0: nothing to replay."""
    message = {
        "seq": 0,
        "kind": "runner",
        "device": runner.device_id,
        "runner": runner.name,
        "state": runner.state,
    }
    transaction.on_commit(lambda: _send(QUEUE_GROUP, message))


def send_job(job: RunnerJob) -> None:
    """Tell the watchers of the queue that a job changed, not of which task: drafts are private.

    `seq` 0: nothing to replay.
    """
    message = {"seq": 0, "kind": "job", "device": job.device_id, "status": str(job.status)}
    transaction.on_commit(lambda: _send(QUEUE_GROUP, message))


_held: ContextVar[list[tuple[str, dict[str, object]]] | None] = ContextVar("held", default=None)


@contextmanager
def together() -> Iterator[None]:
    """Send what is to be sent within over one connection, at the end."""
    messages: list[tuple[str, dict[str, object]]] = []
    token = _held.set(messages)
    try:
        yield
    finally:
        _held.reset(token)
        _send_all(messages)


def _send(group: str, message: dict[str, object]) -> None:
    # encoded once here, not once for each of the watchers
    envelope = {"type": "site.event", "group": group, "seq": message["seq"]}
    envelope["text"] = json.dumps(message)
    held = _held.get()
    if held is not None:
        held.append((group, envelope))
    else:
        _send_all([(group, envelope)])


def _send_all(messages: Sequence[tuple[str, dict[str, object]]]) -> None:
    layer = get_channel_layer()
    if layer is None or not messages:
        return
    try:
        if isinstance(layer, RedisPubSubChannelLayer):
            _publish(layer, messages)
        else:
            async_to_sync(_send_in_order)(layer, messages)
    except (RedisError, OSError) as error:
        log.warning("watchers of %s missed %d event(s): %s", messages[0][0], len(messages), error)


def _publish(
    layer: RedisPubSubChannelLayer, messages: Sequence[tuple[str, dict[str, Any]]]
) -> None:
    """What its `group_send` does, for all at once and over the connection that is there.

    It would make an event loop and a connection for each message of a process without a loop.
    """
    layers: Any = settings.CHANNEL_LAYERS
    prefix = layers["default"]["CONFIG"].get("prefix", "asgi")
    with queues.connection().pipeline(transaction=False) as pipe:
        for group, envelope in messages:
            pipe.publish(f"{prefix}__group__{group}", layer.serialize(envelope))
        pipe.execute()


async def _send_in_order(layer: Any, messages: Sequence[tuple[str, dict[str, Any]]]) -> None:
    for group, envelope in messages:
        await layer.group_send(group, envelope)


_QUEUE_REPLAY_LIMIT = 500


def events(evaluation: Evaluation, since: int = 0) -> list[dict[str, object]]:
    """What happened to the evaluation after event number `since`, in order."""
    hidden = evaluation.task_version.hidden_names
    rows = evaluation.events.filter(position__gt=since).order_by("position")
    return [event_message(row, hidden) for row in rows]


def logs_of_lost(evaluation: Evaluation) -> list[tuple[int, str]]:
    """By attempt: what runners said of attempts that they could not end, for admins."""
    rows = evaluation.events.filter(kind="lost", payload__has_key="log").order_by("position")
    return [(row.attempt, str(row.payload["log"])) for row in rows]


def queue_events(since: int) -> list[dict[str, object]]:
    """What happened to all queues after event number `since`: at most the newest 500, in order."""
    rows = (
        EvaluationEvent.objects.filter(pk__gt=since, kind__in=LIFECYCLE)
        .select_related("evaluation__submission", "evaluation__task_version__task")
        .defer(
            "evaluation__task_version__document",
            "evaluation__submission__source",
            "evaluation__submission__files",
        )
        .order_by("-pk")[:_QUEUE_REPLAY_LIMIT]
    )
    return [queue_message(row, row.evaluation) for row in reversed(rows)]
