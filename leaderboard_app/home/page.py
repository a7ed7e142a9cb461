"""What the first page shows, ready to print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from leaderboard_app.boards.ranking import Entry, Problem, counted_problems
from leaderboard_app.boards.records import Record, furthest_ahead, leaders, record_of_the_day
from leaderboard_app.boards.selectors import default_device
from runs_app.core.queue.loads import Load, loads
from runs_app.core.queue.runners import no_runner
from runs_app.core.queue.selectors import Bar
from runs_app.core.work.access import listed_evaluations
from runs_app.core.work.result_state import SURE_LEAD
from runs_app.models import Audited, Device, Evaluation, Run, Status
from runs_app.optimiser.evolve.commands import Edit
from runs_app.optimiser.page import RunRow, run_rows
from runs_app.optimiser.selectors.runs import visible_runs
from tasks_app import drawings
from tasks_app.people import Viewer
from tasks_app.selectors import published_tasks

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
    no_runner: bool
    """Whether no runner is connected; the page says so once, beside its invitation."""
    line: Line | None
    """The run with the newest step, else the one that ended last, else an imported one.

    None of those whose best is their seed: their strategy has found nothing yet.
    """
    runs: list[RunRow]
    """The other runs."""
    record: Record | None
    ahead: Evaluation | None
    """Where there is no record: the leader that is furthest ahead, if there is any."""
    tasks: int
    """How many there are."""
    final: int
    """How many boards of one task have a leader that isn't provisional."""
    audited: int
    """How many of these leaders an audit has passed."""

    @property
    def latest_s(self) -> float | None:
        """Seconds from the submission to the verdict of the latest that a person waited for."""
        for each in self.verdicts:
            if each.urgency.is_of_people and each.finished_at is not None:
                return (each.finished_at - each.created_at).total_seconds()
        return None


@dataclass(frozen=True, kw_only=True)
class Leaders:
    """A device's leaders on one axis of scores."""

    device: Device
    entries: list[Entry]
    axis: drawings.Axis
    first: str
    """The agent that leads most of the device's tasks; empty if every lead is provisional."""
    leads: int
    """How many it leads, of `of`; both leave out provisional leads."""
    of: str
    """How many tasks or task directions, with their noun."""


@dataclass(frozen=True, kw_only=True)
class HomePage:
    """The first page; `host` is this site's address."""

    live: Live
    board: Leaders | None
    others: list[Device]
    """The other devices with leaders."""
    host: str


def live(user: Viewer, now: datetime, leading: Collection[UUID]) -> Live:
    """What happens now, as `user` may see it; `leading` are keys of those that lead a board."""
    evaluations = listed_evaluations(user)
    elsewhere = Device.objects.exclude(imported_from="").values("pk")
    here = evaluations.exclude(device__in=elsewhere)
    finished = here.filter(status=Status.FINISHED)
    running = here.filter(status=Status.RUNNING, finished_at=None)
    every = visible_runs(user).order_by("-advanced_at")
    runs = every.exclude(device__in=elsewhere)
    going = list(runs.filter(status=Run.Status.RUNNING)[:_RUNS])
    rows = run_rows(going)
    line = next((row for row in rows if not (row.run.best and row.run.best.is_seed)), None)
    if line is None:
        found = every.exclude(best__edit=Edit.SEED)
        ended = found.exclude(device__in=elsewhere).filter(status=Run.Status.FINISHED)[:1]
        line = next(iter(run_rows(ended or found.filter(device__in=elsewhere)[:1])), None)
    record = record_of_the_day(now, leading)
    return Live(
        at_work=_first(running.order_by("queue_place", "-started_at"), _AT_WORK),
        verdicts=_first(finished.order_by("-finished_at"), _FEED),
        queues=_queues(loads(now)),
        no_runner=no_runner(now),
        line=Line(row=line, values=best_so_far(line.run)) if line else None,
        runs=[row for row in rows if row is not line],
        record=record,
        ahead=None if record else furthest_ahead(leading),
        tasks=published_tasks().count(),
        **_counts(leading),
    )


def _counts(leading: Collection[UUID]) -> dict[str, int]:
    final = Evaluation.objects.filter(SURE_LEAD, pk__in=leading)
    passed = Q(audited=Audited.PASSED)
    return final.aggregate(final=Count("pk"), audited=Count("pk", filter=passed))


def best_so_far(run: Run) -> list[float | None]:
    """Speedup over the seed kernel by candidate number, where one was faster than all before it.

    The last one is repeated at the end, as far as the run has come. Empty without a seed's time.
    """
    if not run.seed_latency_ns:
        return []
    correct = run.candidates.filter(verdict="CORRECT", latency_ns__isnull=False).order_by("number")
    best = run.seed_latency_ns
    line: list[float | None] = [1.0, *[None] * run.candidates_made]
    columns = ("number", "latency_ns", "feedback__latency_ns")  # the feedback is of the search
    for number, latest_ns, search_ns in correct.values_list(*columns):
        latency_ns = search_ns or latest_ns
        if latency_ns and latency_ns < best and number < len(line):
            best, line[number] = latency_ns, run.seed_latency_ns / latency_ns
    line[-1] = run.seed_latency_ns / best
    return line


def _first(rows: QuerySet[Evaluation], count: int) -> list[Evaluation]:
    """The first of these. Keys come first, by an index alone.

    With all that is shown of them SQLite would begin at the devices, and sort what they have.
    """
    keys = rows.values_list("pk", flat=True)[:count]
    return list(rows.filter(pk__in=list(keys)))


def boards(leading: Collection[UUID], user: Viewer) -> tuple[Leaders | None, list[Device]]:
    """The board that the first page shows, and the devices of the others.

    It's the one on which the leaderboard opens, if that has leaders.
    """
    found = leaders(leading)
    if not found:
        return None, []
    if len(found) > 1:
        default = default_device(reader=user)
        found = sorted(found, key=lambda pair: pair[0].slug != default)
    device, entries = found[0]
    rows = Evaluation.objects.filter(pk__in=leading, device=device)
    columns = ("submission__agent__name", "task_version__task__slug", "direction")
    sure = list(rows.filter(SURE_LEAD).values_list(*columns))
    counts = Counter(agent for agent, _, _ in sure)
    first, leads = min(counts.items(), key=lambda pair: (-pair[1], pair[0]), default=("", 0))
    board = Leaders(
        device=device,
        entries=entries,
        axis=drawings.axis(e.rated.high for e in entries if e.rated is not None),
        first=first,
        leads=leads,
        of=counted_problems([Problem(task, direction) for _, task, direction in sure]),
    )
    return board, [device for device, _ in found[1:]]


def _queues(found: list[Load]) -> list[Queue]:
    most = max((load.running + load.waiting for load in found), default=0)
    return [Queue(load=load, bar=load.bar(most)) for load in found]
