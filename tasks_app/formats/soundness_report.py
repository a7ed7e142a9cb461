"""A task's soundness report as a person reads it: wrong kernels, honest ones and filters.

`python -m gpu_runner filter --json` writes it; it is data, and nothing in it is executed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from gpu_runner.data.check import REPORT_LIMIT_BYTES
from gpu_runner.data.codec import DataError, decode
from gpu_runner.data.formats.text import decoded
from gpu_runner.data.verdict import Direction

REFERENCE = "reference"
"""The honest kernel that is the reference itself, in the precision of a kernel."""

_MOST_COUNTED = 10_000  # of one direction

LARGEST = REPORT_LIMIT_BYTES
"""Bytes of a report's file at most."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What a filter found in one direction; `passed` is None where it cannot be said."""

    name: str
    direction: str = ""
    workload: str = ""
    value: float | None = None
    limit: str = ""
    passed: bool | None = None
    text: str = ""

    @property
    def state(self) -> str:
        """passed, flagged or unknown."""
        return {True: "passed", False: "flagged", None: "unknown"}[self.passed]


@dataclass(frozen=True, kw_only=True)
class TriedKernel:
    """A wrong or an honest kernel made from the reference, on the workload that says most.

    scaled: its largest error as a multiple of what the task allows there. state: failed, survived,
    equivalent or untried of a wrong one; empty of an honest one. reason: where an honest one is
    off.
    """

    name: str
    direction: str = ""
    workload: str = ""
    scaled: float | None = None
    state: str = ""
    reason: str = ""

    @property
    def differs(self) -> bool:
        """Whether its workload and its error say anything: it is not the reference itself."""
        return self.state not in ("equivalent", "untried")

    @property
    def shown_state(self) -> str:
        """The state; of an honest one right, or off where it misses what is allowed."""
        if self.state or self.scaled is None:
            return self.state
        return "right" if self.scaled <= 1 and not self.reason else "off"


@dataclass(frozen=True, kw_only=True)
class Unlisted:
    """How much a brief report leaves out of one direction, because it is as it should be.

    failed: wrong kernels that fail, by the workload on which they do so most surely. passed:
    filters. right: honest kernels.
    """

    failed: Mapping[str, int] = field(default_factory=dict)
    passed: int = 0
    right: int = 0

    def __post_init__(self) -> None:
        """Raise `DataError` if a number counts nothing, or more than a report may list."""
        counts = (*self.failed.values(), self.passed, self.right)
        if min(counts) < 0 or sum(counts) > _MOST_COUNTED:
            raise DataError(
                "unlisted",
                f"has a count below 0, or counts that add up to more than {_MOST_COUNTED}",
            )


@dataclass(frozen=True, kw_only=True)
class SoundnessReport:
    """A report. One without filters is of a version that had none.

    unlisted: by direction what a brief report counts and does not list.
    """

    filters: tuple[Filter, ...] = ()
    mutants: tuple[TriedKernel, ...] = ()
    honest: tuple[TriedKernel, ...] = ()
    unlisted: Mapping[Direction, Unlisted] = field(default_factory=dict)

    @property
    def unlisted_failed(self) -> int:
        """Wrong kernels that fail and are not listed."""
        return sum(sum(each.failed.values()) for each in self.unlisted.values())

    @property
    def unlisted_passed(self) -> int:
        """Filters that passed and are not listed."""
        return sum(each.passed for each in self.unlisted.values())

    @property
    def unlisted_right(self) -> int:
        """Honest kernels that are right and not listed."""
        return sum(each.right for each in self.unlisted.values())

    @property
    def tried(self) -> int:
        """Wrong kernels, listed or not."""
        return len(self.mutants) + self.unlisted_failed

    @property
    def asked(self) -> int:
        """Filters, listed or not."""
        return len(self.filters) + self.unlisted_passed

    @property
    def flagged(self) -> tuple[str, ...]:
        """The filters that speak against the task, each as `direction: name`."""
        return tuple(f"{f.direction}: {f.name}" for f in self.filters if f.passed is False)

    @property
    def misses(self) -> tuple[str, ...]:
        """Directions in which the reference itself misses its task's bound, with how far.

        Each element may be within its bound and the whole output not: then no number tells.
        """
        return tuple(
            f"{kernel.direction}: {kernel.scaled:.3g} times the bound"
            if kernel.scaled is not None and kernel.scaled > 1
            else f"{kernel.direction}: the whole output is off"
            for kernel in self.honest
            if kernel.name == REFERENCE and kernel.shown_state == "off"
        )


def read_report(document: Mapping[str, object]) -> SoundnessReport:
    """The lists and counts of a report; raises `DataError` naming an entry that is none."""
    return SoundnessReport(
        filters=_entries(Filter, document, "filters"),
        mutants=_entries(TriedKernel, document, "mutants"),
        honest=_entries(TriedKernel, document, "honest"),
        unlisted=_unlisted(document.get("unlisted", {})),
    )


def is_report(file: Path) -> bool:
    """Whether a file is a soundness report, not a task: a JSON object with a digest and mutants."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return False
        document = json.loads(decoded(file.read_bytes(), file.name))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"digest", "mutants"} <= document.keys()


def _unlisted(counts: object) -> dict[Direction, Unlisted]:
    if not isinstance(counts, Mapping) or not counts.keys() <= {*Direction}:
        raise DataError("unlisted", "is not an object with directions as keys")
    return {
        each: _entry(Unlisted, counts[each], f"unlisted.{each}")
        for each in Direction
        if each in counts
    }


def _entries(cls: type[T], document: Mapping[str, object], field: str) -> tuple[T, ...]:
    entries = document.get(field, [])
    if not isinstance(entries, list):
        raise DataError(field, "is not a list")
    return tuple(_entry(cls, entry, f"{field}[{i}]") for i, entry in enumerate(entries))


def _entry(cls: type[T], entry: object, field: str) -> T:
    """Keys of a newer engine are passed over."""
    if isinstance(entry, Mapping):
        known = {spec.name for spec in dataclasses.fields(cls)}  # type: ignore[arg-type]
        entry = {key: value for key, value in entry.items() if key in known}
    return decode(cls, entry, field)
