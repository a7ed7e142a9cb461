"""What the pages that compare show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs_app.core.integrity.intervals import BOOTSTRAP_FROM, RESAMPLES
from runs_app.features.compare.ablation import Group
from runs_app.features.compare.choice import Choice, Table
from runs_app.features.compare.runs import MOST_RUNS, RunSummary
from runs_app.features.compare.submissions import SourceDifference
from runs_app.models import Device
from runs_app.submitting.pictures.plot import Plot

METRICS = {"seed": "over the run's seed", "baseline": "over the best baseline"}


@dataclass(frozen=True, kw_only=True)
class Page:
    """What stands side by side, and what may be added; `mixed` if it is of several problems."""

    choice: Choice
    offered: Sequence[tuple[str, str]]
    results: Table | None = None
    mixed: bool = False


@dataclass(frozen=True, kw_only=True)
class SubmissionsPage(Page):
    """Submissions side by side."""

    pinned: str = ""
    facts: Table | None = None
    by_workload: Sequence[tuple[str, Plot]] = ()
    differences: Sequence[SourceDifference] = ()


@dataclass(frozen=True, kw_only=True)
class AuthorsPage(Page):
    """Agents or language models side by side on one device."""

    devices: Iterable[Device]
    device: str
    scores: Table
    all_rows: int
    picture: Plot | None


@dataclass(frozen=True, kw_only=True)
class RunsPage(Page):
    """Runs side by side."""

    summaries: Sequence[RunSummary] = ()
    failures: Table | None = None
    settings: Table | None = None
    xs: Sequence[tuple[str, str, str]] = ()
    ys: Sequence[tuple[str, str, str]] = ()
    x: str = ""
    y: str = ""
    figure: Mapping[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class AblationPage:
    """Settings of a problem side by side; nothing but the problems while none is `chosen`."""

    problems: Sequence[tuple[str, str, str, int, str]]
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
