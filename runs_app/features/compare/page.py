"""What the pages that compare show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs_app.features.compare.ablation import BOOTSTRAP_FROM, RESAMPLES, Group
from runs_app.features.compare.authors import Kind, ProblemRow, Standing
from runs_app.features.compare.runs import MOST_RUNS, RunSummary
from runs_app.features.compare.submissions import Column, Line, SourceDifference
from runs_app.models import Device, Run, Submission
from runs_app.submitting.pictures.plot import Plot

METRICS = {"seed": "over the run's seed", "baseline": "over the best baseline"}


@dataclass(frozen=True, kw_only=True)
class SubmissionColumn:
    """A submission, with the addresses of the pages that pin it or leave it out."""

    column: Column
    pinned: bool
    pin: str
    remove: str


@dataclass(frozen=True, kw_only=True)
class AuthorColumn:
    """The same for an author; `ratio` compares its mean score with that of the pinned one."""

    standing: Standing
    pinned: bool
    pin: str
    remove: str
    ratio: str


@dataclass(frozen=True, kw_only=True)
class SubmissionsPage:
    """Submissions side by side; `mixed` if they solve several problems."""

    what: str = "submissions"
    problems: Sequence[str]
    columns: Sequence[SubmissionColumn]
    offered: Sequence[Submission]
    show_all: bool
    toggle_all: str
    downloads: Sequence[tuple[str, str]]
    pinned: Column | None = None
    mixed: bool = False
    lines: Sequence[Line] = ()
    facts: Sequence[Line] = ()
    by_workload: Sequence[tuple[str, Plot]] = ()
    differences: Sequence[SourceDifference] = ()


@dataclass(frozen=True, kw_only=True)
class AuthorsPage:
    """Agents or language models side by side; `shared` counts problems that all have solved."""

    what: str
    kind: Kind
    problems: Sequence[str]
    devices: Iterable[Device]
    device: str
    columns: Sequence[AuthorColumn]
    rows: Sequence[ProblemRow]
    all_rows: int
    shared: int
    picture: Plot | None
    offered: Sequence[str]
    show_all: bool
    toggle_all: str
    downloads: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Cell:
    """A number of one run, how to write it, and its distance from the pinned run's."""

    value: float | None
    delta: str = ""


@dataclass(frozen=True)
class Measure:
    """One measure over all runs; `kind` names how its numbers are written."""

    label: str
    kind: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class RunColumn:
    """The same for a run."""

    run: Run
    pinned: bool
    pin: str
    remove: str


@dataclass(frozen=True, kw_only=True)
class RunsPage:
    """Runs side by side; `mixed` if they are of several problems, `kept` stays in the address."""

    what: str = "runs"
    problems: Sequence[str]
    summaries: Sequence[RunSummary]
    columns: Sequence[RunColumn]
    pinned: RunSummary | None
    lines: Sequence[Measure]
    failures: Sequence[tuple[str, list[int]]]
    settings: Sequence[tuple[str, list[tuple[str, bool]]]]
    show_all: bool
    toggle_all: str
    xs: Sequence[tuple[str, str, str]]
    ys: Sequence[tuple[str, str, str]]
    x: str
    y: str
    figure: Mapping[str, object] | None
    mixed: bool
    offered: Sequence[Run]
    kept: Sequence[tuple[str, object]]


@dataclass(frozen=True, kw_only=True)
class AblationPage:
    """Settings of a problem side by side; nothing but the problems while none is `chosen`."""

    problems: Sequence[tuple[str, str, str, int]]
    unknown: bool = False
    chosen: tuple[str, str, str] | None = None
    metric: str = ""
    metrics: Sequence[tuple[str, str]] = tuple(METRICS.items())
    others: Sequence[str] = ()
    factors: Sequence[str] = ()
    by_default: bool = False
    groups: Sequence[Group] = ()
    repeated: bool = False
    total: int = 0
    unmeasured: int = 0
    looked_at: int = 0
    most: int = MOST_RUNS
    unfinished: int = 0
    bootstrap_from: int = BOOTSTRAP_FROM
    resamples: int = RESAMPLES
    export: str = ""
