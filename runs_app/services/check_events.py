"""Record what runners report of checks; the same fact twice changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event, EventKind
from runs_app import broadcast
from runs_app.models import Runner, Status, TaskCheck
from runs_app.services import check_lifecycle
from runs_app.services.errors import EventError
from runs_app.services.text import storable
from tasks_app.loader import Report, report_of
from tasks_app.services import record_report
from tasks_app.soundness_report import LARGEST

_LONGEST_TEXT = 10_000  # characters that are stored of a runner's words


def record(event: Event, now: datetime) -> bool:
    """Store one fact of a check; False if it was known before, or came too late to matter.

    Raises `EventError` for an event that cannot be true. Call it in a transaction.
    """
    try:
        check = check_lifecycle.lock(event.evaluation_id)
    except TaskCheck.DoesNotExist:
        raise EventError(f"there is no evaluation or check {event.evaluation_id!r}") from None
    if event.attempt > check.attempt:
        raise EventError(f"attempt {event.attempt} has not begun")
    late = event.attempt != check.attempt or check.is_over
    if late or event.seq <= check.last_seq:
        return False
    check.last_seq, check.last_event_at = event.seq, now
    _HANDLERS[event.kind](check, storable(event.payload), now)
    return True


def _alive(check: TaskCheck, payload: dict[str, Any], now: datetime) -> None:
    check.save(update_fields=["last_seq", "last_event_at"])


def _started(check: TaskCheck, payload: dict[str, Any], now: datetime) -> None:
    check.runner = Runner.objects.filter(name=payload.get("runner", "")).first()
    check.runner_boot_id = check.runner.boot_id if check.runner else ""
    _run(check, now)


def _stage(check: TaskCheck, payload: dict[str, Any], now: datetime) -> None:
    check.stage = str(payload.get("detail", ""))[:_LONGEST_TEXT]
    _run(check, now)


def _run(check: TaskCheck, now: datetime) -> None:
    began = check.status != Status.RUNNING
    check.started_at = check.started_at or now
    check.status = Status.RUNNING
    check.save()
    if began:
        broadcast.send_check(check)


def _finished(check: TaskCheck, payload: dict[str, Any], now: datetime) -> None:
    document = payload.get("report")
    if document is None:
        reason = str(payload.get("reason") or "its runner gave neither a report nor a reason")
        check_lifecycle.end(check, reason=reason[:_LONGEST_TEXT], now=now)
        return
    try:
        report = _read(check, codec.encode(document))
    except DataError as error:
        reason = f"the report of its runner cannot be used: {error}"[:_LONGEST_TEXT]
        check_lifecycle.end(check, reason=reason, now=now)
        return
    record_report(check.version, report, now, made_here=True)
    check_lifecycle.end(check, passed=report.passed, now=now)


def _read(check: TaskCheck, document: Any) -> Report:
    """The report that a runner claims to have made; raises `DataError` for any other."""
    if not isinstance(document, dict):
        raise DataError("report", "is not a JSON object")
    if len(json.dumps(document)) > LARGEST:
        raise DataError("report", f"is larger than {LARGEST} bytes")
    report = report_of(document)
    task = check.version.data
    facts = {
        "task": (report.task, task.name),
        "digest": (report.digest, task.digest()),
        "device": (report.device, check.device_id),
    }
    for field, (found, expected) in facts.items():
        if found != expected:
            raise DataError(field, f"is {found!r}, expected {expected!r}")
    return report


def _lost(check: TaskCheck, payload: dict[str, Any], now: datetime) -> None:
    reason = str(payload.get("reason") or "the runner lost it")[:_LONGEST_TEXT]
    check_lifecycle.retry_or_give_up(check, reason=reason, now=now)


_HANDLERS: dict[EventKind, Callable[[TaskCheck, dict[str, Any], datetime], None]] = {
    EventKind.ALIVE: _alive,
    EventKind.STARTED: _started,
    EventKind.STAGE: _stage,
    EventKind.FINISHED: _finished,
    EventKind.LOST: _lost,
}
