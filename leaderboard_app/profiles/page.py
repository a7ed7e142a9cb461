"""What the page of an agent, a person or a language model shows, ready to print."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from leaderboard_app.boards.ranking import Entry, Problem, mean_rated, sure_of
from leaderboard_app.boards.selectors import BoardTask, board_tasks
from leaderboard_app.profiles.selectors import (
    Owner,
    Partner,
    Spend,
    Tries,
    boards_led,
    days_of,
    devices_of,
    entries_of,
    held_of,
    partners_of,
    runs_of,
    solved_with,
    spend_of,
    tries_of,
)
from runs_app.core.integrity.ranking import Estimate
from runs_app.models import Agent, Device, Evaluation, LanguageModel, LanguageModelCall
from runs_app.optimiser.page import RunRow, run_rows
from runs_app.optimiser.selectors.language_models import Usage
from tasks_app import drawings
from tasks_app.people import Viewer

_RUNS = 8


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A problem that was tried; `entry` is the best result, None where none counts."""

    problem: Problem
    entry: Entry | None
    judged: int
    held: int
    """Correct results that count only once a person has decided."""


@dataclass(frozen=True, kw_only=True)
class Strength:
    """How it stands on the problems of one kind, such as one scenario."""

    name: str
    cells: list[Cell]
    problems: int
    """All of this kind, tried or not."""

    @property
    def solved(self) -> int:
        """How many have a correct result."""
        return len(self._entries)

    @property
    def attempted(self) -> int:
        """How many were tried."""
        return len(self.cells)

    @property
    def share(self) -> float:
        """Solved of all."""
        return self.solved / self.problems if self.problems else 0.0

    @property
    def speedup(self) -> Estimate | None:
        """The mean over the solved ones that aren't provisional."""
        return mean_rated(self._entries)

    @property
    def provisional(self) -> int:
        """How many solved ones that mean leaves out."""
        return self.solved - len(sure_of(self._entries))

    @property
    def _entries(self) -> list[Entry]:
        return [cell.entry for cell in self.cells if cell.entry is not None]


@dataclass(frozen=True, kw_only=True)
class Trend:
    """One value a day with results, from the first to the last."""

    first: str
    last: str
    solved: list[float | None]
    """Problems solved so far."""
    speedups: list[float | None]
    """Geometric mean of the best speedups so far."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What an owner has achieved on one device."""

    device: Device
    devices: list[Device]
    whole: Strength
    """All problems together."""
    scenarios: list[Strength]
    dtypes: list[Strength]
    axis: drawings.Axis
    """Shared by the speedups of scenarios and dtypes."""
    judged: int
    accepted: int
    held: int
    """Correct, and counted nowhere until a person has decided."""
    leads: int
    verified: int
    trend: Trend | None
    runs: Spend
    """Its public runs: only kernels that they submitted are among the figures."""

    @property
    def correct_share(self) -> float | None:
        """Correct of all judged evaluations."""
        return self.accepted / self.judged if self.judged else None


@dataclass(frozen=True, kw_only=True)
class Work:
    """Whom it worked with, and its runs, as the viewer may see them."""

    partners: list[Partner]
    runs: list[RunRow]
    spend: Spend


class NoSuchDeviceError(LookupError):
    """The address names a device on which the owner has no result."""


@dataclass(frozen=True, kw_only=True)
class AgentPage:
    """An agent or a person; `agents` are those of a person."""

    agent: Agent
    agents: Sequence[Agent]
    profile: Profile | None
    work: Work
    evaluations: QuerySet[Evaluation]


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """A language model with its endpoint and its calls."""

    model: LanguageModel
    host: str
    key_is_set: bool | None
    usage: Usage


@dataclass(frozen=True, kw_only=True)
class LastTest:
    """The newest test of a language model, and how long it has taken."""

    call: LanguageModelCall
    is_over: bool
    took_s: float


@dataclass(frozen=True, kw_only=True)
class ModelPage:
    """A language model: how it is called, what it did, a test of it, and what it wrote last."""

    model: LanguageModel
    keyed: ModelRow
    profile: Profile | None
    work: Work
    test: LastTest | None
    evaluations: QuerySet[Evaluation]


def profile(owner: Owner, wanted: str = "") -> Profile | None:
    """Its results on the wanted device, or on the one with most of them; None without any.

    Raises `NoSuchDeviceError` for a device on which it was not judged.
    """
    devices = devices_of(owner)
    named = [device for device in devices if wanted in ("", device.slug)]
    if not named:
        if wanted:
            raise NoSuchDeviceError(wanted)
        return None
    return _profile(owner, named[0], devices)


def work(owner: Owner, viewer: Viewer) -> Work:
    """Its partners and runs."""
    runs = runs_of(owner, viewer)
    partners = partners_of(owner, solved_with(owner))
    return Work(partners=partners, runs=run_rows(runs[:_RUNS]), spend=spend_of(runs))


def _profile(owner: Owner, device: Device, devices: list[Device]) -> Profile:
    tasks = {task.slug: task for task in board_tasks()}
    tries = [each for each in tries_of(owner, device) if each.problem.task in tasks]
    held = {each: n for each, n in held_of(owner, device).items() if each.task in tasks}
    cells = _cells(entries_of(owner, device), tries, held)
    whole = Strength(name="", cells=cells, problems=sum(len(t.directions) for t in tasks.values()))
    scenarios = _strengths(cells, tasks, lambda task: task.scenario)
    dtypes = _strengths(cells, tasks, lambda task: task.dtype)
    speedups = [each.speedup for each in (*scenarios, *dtypes)]
    bounds = [bound for each in speedups if each for bound in (each.low, each.high)]
    return Profile(
        device=device,
        devices=devices,
        whole=whole,
        scenarios=scenarios,
        dtypes=dtypes,
        axis=drawings.axis(bounds),
        judged=sum(each.judged for each in tries),
        accepted=sum(each.accepted for each in tries),
        held=sum(held.values()),
        leads=boards_led(owner, device),
        verified=sum(cell.entry is not None and cell.entry.verified for cell in cells),
        trend=_trend(owner, device),
        runs=spend_of(runs_of(owner, AnonymousUser()).filter(device=device)),
    )


def _cells(
    entries: Sequence[Entry], tries: Sequence[Tries], held: Mapping[Problem, int]
) -> list[Cell]:
    best = {entry.problem: entry for entry in entries}
    judged = {each.problem: each.judged for each in tries}
    return [
        Cell(
            problem=problem,
            entry=best.get(problem),
            judged=judged.get(problem, 0),
            held=held.get(problem, 0),
        )
        for problem in sorted({*judged, *held})
    ]


def _strengths(
    cells: Sequence[Cell], tasks: Mapping[str, BoardTask], kind: Callable[[BoardTask], str]
) -> list[Strength]:
    """Kinds of which something was tried, by the share that was solved."""
    problems: dict[str, int] = defaultdict(int)
    for task in tasks.values():
        problems[kind(task)] += len(task.directions)
    tried: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        tried[kind(tasks[cell.problem.task])].append(cell)
    found = [Strength(name=name, cells=own, problems=problems[name]) for name, own in tried.items()]
    return sorted(found, key=lambda strength: (-strength.share, strength.name))


def _trend(owner: Owner, device: Device) -> Trend | None:
    days = days_of(owner, device)
    if not days:
        return None
    best: dict[Problem, float] = {}
    solved: dict[int, float] = {}
    speedups: dict[int, float] = {}
    start = days[0][0].toordinal()
    for day, problem, value in days:
        best[problem] = max(best.get(problem, 0.0), value)
        place = day.toordinal() - start
        solved[place] = len(best)
        speedups[place] = statistics.geometric_mean(best.values())
    length = days[-1][0].toordinal() - start + 1
    return Trend(
        first=f"{days[0][0]:%Y-%m-%d}",
        last=f"{days[-1][0]:%Y-%m-%d}",
        solved=[solved.get(place) for place in range(length)],
        speedups=[speedups.get(place) for place in range(length)],
    )
