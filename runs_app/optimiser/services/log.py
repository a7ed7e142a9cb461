"""Append events to a locked run, and tell its watchers after the commit."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from runs_app.core.messaging import broadcast
from runs_app.core.text import storable
from runs_app.models import Run, RunEvent
from runs_app.optimiser.changes import change_of
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.events import Event
from runs_app.optimiser.selectors.runs import run_summary


def lock(run_id: UUID | str) -> Run:
    """The run's row, locked until the transaction ends; raises `Run.DoesNotExist`."""
    rows = Run.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("task_version__task", "device", "user", "best").get(pk=run_id)


def write(run: Run, kind: str, payload: dict[str, object], *, now: datetime) -> RunEvent:
    """Append what a person or the site did; the caller saves the run before the commit."""
    run.events_stored += 1
    event = RunEvent.objects.create(
        run=run, seq=run.events_stored, kind=kind, payload=storable(payload), created_at=now
    )
    # what it changed is read at the commit, when the rows have every change of the step
    transaction.on_commit(lambda: _tell(run, event, now), robust=True)  # the step has happened
    return event


def write_event(
    run: Run, event: Event, *, now: datetime, row: dict[str, str] | None = None
) -> RunEvent:
    """Append an event; `row` holds ids of what the site made of it."""
    payload = events.encode(event)
    return write(run, events.kind_of(event), payload | ({"row": row} if row else {}), now=now)


def _tell(run: Run, event: RunEvent, now: datetime) -> None:
    rows = change_of(run, [event], now)
    broadcast.send_run_event(event, run_summary(run, now), run.task_version.hidden_names, rows)
