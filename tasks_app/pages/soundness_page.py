"""The page that shows what proves a task sound: filters, wrong kernels and honest ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tasks_app import selectors
from tasks_app.formats.loader import command_argument
from tasks_app.formats.soundness_report import (
    Filter,
    SoundnessReport,
    TriedKernel,
    read_report,
)
from tasks_app.models import Override, Soundness, Task, TaskVersion
from tasks_app.people import Viewer

_FILTER_ORDER = ("flagged", "unknown", "passed")
_MUTANT_ORDER = ("survived", "failed", "equivalent", "untried")
_COMMAND = ".venv/bin/python -m gpu_runner filter --device cpu --task {task} --json {name}.json"


@dataclass(frozen=True)
class ShownReport:
    """A stored report with what a page says of it; its lists are empty where there is none."""

    soundness: Soundness | None
    report: SoundnessReport

    @property
    def filter_counts(self) -> Counter[str]:
        """How many filters are in each state."""
        listed = Counter(each.state for each in self.report.filters)
        return listed + Counter(passed=self.report.unlisted_passed)

    @property
    def mutant_counts(self) -> Counter[str]:
        """How many wrong kernels are in each state."""
        listed = Counter(each.state for each in self.report.mutants)
        return listed + Counter(failed=self.report.unlisted_failed)

    @property
    def largest_error(self) -> float | None:
        """The largest of an honest kernel, as a multiple of what is allowed; None if unknown."""
        errors = [kernel.scaled for kernel in self.report.honest if kernel.scaled is not None]
        return max(errors, default=None)

    @property
    def flagged(self) -> list[Filter]:
        """The filters that speak against the task."""
        return [each for each in self.report.filters if each.passed is False]

    @property
    def survivors(self) -> list[TriedKernel]:
        """The wrong kernels that pass."""
        return [each for each in self.report.mutants if each.state == "survived"]

    @property
    def misses(self) -> list[TriedKernel]:
        """The honest kernels that are off."""
        return [each for each in self.report.honest if each.shown_state == "off"]


def report_of(version: TaskVersion, kind: str) -> Soundness | None:
    """Its report of a kind of device; the one that decides, if there is none of that kind."""
    chosen = (report for report in version.reports.all() if report.kind == kind)
    return next(chosen, version.report)


def report_for(soundness: Soundness, user: Viewer) -> SoundnessReport:
    """The report as `user` may see it, with what speaks against the task first."""
    return _in_order(read_report(selectors.soundness_document(soundness, user)))


def whole(soundness: Soundness) -> ShownReport:
    """The report with its hidden workloads named, for those who know them."""
    return ShownReport(soundness, _in_order(read_report(soundness.document)))


def _in_order(report: SoundnessReport) -> SoundnessReport:
    """The report with what speaks against the task first."""
    return replace(
        report,
        filters=tuple(sorted(report.filters, key=lambda f: _FILTER_ORDER.index(f.state))),
        mutants=tuple(sorted(report.mutants, key=lambda m: _rank(m.state))),
    )


@dataclass(frozen=True, kw_only=True)
class SoundnessPage:
    """What proves a version sound; `hidden` is how many of its workloads are."""

    task: Task
    version: TaskVersion
    soundness: Soundness | None
    override: Override | None
    shown: ShownReport
    directed: bool
    hidden: int
    command: str
    # those under way, by id of the version
    checks: Mapping[int, str] = field(default_factory=dict)


def soundness_page(task: Task, version: TaskVersion, user: Viewer, kind: str) -> SoundnessPage:
    """What the page says of a version, by its report of this kind of device if there is one."""
    soundness = report_of(version, kind)
    report = report_for(soundness, user) if soundness else SoundnessReport()
    return SoundnessPage(
        task=task,
        version=version,
        soundness=soundness,
        override=version.override,
        shown=ShownReport(soundness, report),
        directed=len(version.directions) > 1,
        hidden=len(version.hidden_names),
        command=_COMMAND.format(task=command_argument(task.slug), name=task.slug),
    )


def _rank(state: str) -> int:
    return _MUTANT_ORDER.index(state) if state in _MUTANT_ORDER else 0
