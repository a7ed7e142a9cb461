"""The page that shows what proves a task sound: filters, wrong kernels and honest ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tasks_app import selectors
from tasks_app.loader import command_argument
from tasks_app.models import Soundness, Task, TaskVersion
from tasks_app.soundness_report import SoundnessReport, read_report

_FILTER_ORDER = ("flagged", "unknown", "passed")
_MUTANT_ORDER = ("survived", "failed", "equivalent")
_COMMAND = ".venv/bin/python -m gpu_runner filter --device cpu --task {task} --json {name}.json"


def report_for(soundness: Soundness, user: Any) -> SoundnessReport:
    """The report as `user` may see it, with what speaks against the task first."""
    return in_order(read_report(selectors.soundness_document(soundness, user)))


def in_order(report: SoundnessReport) -> SoundnessReport:
    """The report with what speaks against the task first."""
    return SoundnessReport(
        filters=tuple(sorted(report.filters, key=lambda f: _FILTER_ORDER.index(f.state))),
        mutants=tuple(sorted(report.mutants, key=lambda m: _rank(m.state))),
        honest=report.honest,
    )


def page_context(task: Task, version: TaskVersion, user: Any) -> dict[str, Any]:
    """What the page says of a version; without a report its lists are empty."""
    soundness = Soundness.objects.filter(version=version).first()
    report = report_for(soundness, user) if soundness else SoundnessReport()
    errors = [kernel.scaled for kernel in report.honest if kernel.scaled is not None]
    return {
        "task": task,
        "version": version,
        "soundness": soundness,
        "override": version.override_of(soundness),
        "report": report,
        "filter_counts": Counter(each.state for each in report.filters),
        "mutant_counts": Counter(each.state for each in report.mutants),
        "largest_error": max(errors, default=None),
        "directed": len(version.directions) > 1,
        "hidden": len(version.hidden_names),
        "command": _COMMAND.format(task=command_argument(task.slug), name=task.slug),
    }


def _rank(state: str) -> int:
    return _MUTANT_ORDER.index(state) if state in _MUTANT_ORDER else 0
