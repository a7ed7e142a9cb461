"""What the first page shows, ready to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from leaderboard_app.boards.ranking import Entry
from leaderboard_app.boards.recent import leaders, record
from leaderboard_app.boards.records import Record
from runs_app.models import Device, Evaluation, Status
from runs_app.optimisation.page import RunRow, run_rows
from runs_app.optimisation.selectors.runs import best_so_far, latest_run, running_runs
from runs_app.queue.bar import Bar
from runs_app.queue.loads import Load, loads
from runs_app.work.access import listed_evaluations
from tasks_app import drawings
from tasks_app.people import Viewer

_FEED = 8
_RUNS = 4
_AT_WORK = 3


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A device's load as a bar; all devices' bars have the same scale."""

    load: Load
    bar: Bar


@dataclass(frozen=True, kw_only=True)
class Line:
    """A run and how its best kernel has grown; `values` are speedups over the seed."""

    row: RunRow
    values: list[float | None]


@dataclass(frozen=True, kw_only=True)
class Live:
    """What changes while one looks."""

    at_work: Sequence[Evaluation]
    verdicts: Sequence[Evaluation]
    queues: list[Queue]
    line: Line | None
    """The run with the newest step, else the one that ended last."""
    runs: list[RunRow]
    """The other runs."""
    record: Record | None


@dataclass(frozen=True, kw_only=True)
class Leaders:
    """A device's leaders on one axis of speedups."""

    device: Device
    entries: list[Entry]
    axis: drawings.Axis


def live(user: Viewer, now: datetime) -> Live:
    """What happens now, as `user` may see it."""
    evaluations = listed_evaluations(user)
    elsewhere = Device.objects.exclude(imported_from="").values("pk")
    here = evaluations.exclude(device__in=elsewhere)
    finished = here.filter(status=Status.FINISHED)
    running = here.filter(status=Status.RUNNING, finished_at=None)
    rows = run_rows(list(running_runs(user, _RUNS)) or latest_run(user))
    return Live(
        at_work=_first(running.order_by("background", "-started_at"), _AT_WORK),
        verdicts=_first(finished.order_by("-finished_at"), _FEED),
        queues=_queues(loads(now)),
        line=Line(row=rows[0], values=best_so_far(rows[0].run)) if rows else None,
        runs=rows[1:],
        record=record(now),
    )


def _first(rows: QuerySet[Evaluation], count: int) -> list[Evaluation]:
    """The first of these. Keys come first, by an index alone.

    With all that is shown of them SQLite would begin at the devices, and sort what they have.
    """
    keys = rows.values_list("pk", flat=True)[:count]
    return list(rows.filter(pk__in=list(keys)))


def device_leaders() -> list[Leaders]:
    """The leaders of each device that has any."""
    return [
        Leaders(
            device=device,
            entries=entries,
            axis=drawings.axis(e.speedup.high for e in entries if e.speedup is not None),
        )
        for device, entries in leaders()
    ]


def _queues(found: list[Load]) -> list[Queue]:
    most = max((load.running + load.waiting for load in found), default=0)
    return [Queue(load=load, bar=load.bar(most)) for load in found]
