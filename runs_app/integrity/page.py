"""What pages show of suspicions, audits and the supervisor's own clock, ready to print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_CONTEXT_LINES = 3
_LONGEST_LINE = 300

_CHECKS = {
    "source": "Source",
    "library": "Built library",
    "floor": "Physical limit",
    "luck": "Few fast calls",
    "clock": "Claimed times",
    "device": "State of the device",
    "audit": "Audit",
}
_OF_CODE = (
    "A re-run does not lift what the source raises. Change what is named below, and submit anew."
)
_OF_TIMES = (
    "A busy host can raise one about times."
    " Run it again at a quieter time: the new result takes this one's place."
)
_ADVICE = {"source": _OF_CODE, "library": _OF_CODE, "luck": _OF_TIMES, "clock": _OF_TIMES}
_STATES = {
    "passed": ("good", "✓", "Passed"),
    "failed": ("bad", "✗", "Failed"),
    "suspicious": ("warn", "!", "Suspicious"),
    "skipped": ("", "–", "Skipped"),
    "inconclusive": ("", "?", "Inconclusive"),
}


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """A line of an excerpt; `tripped` if it is the one that a check names."""

    number: int
    text: str
    tripped: bool


@dataclass(frozen=True, kw_only=True)
class SuspicionView:
    """One suspicion, with the lines around the one that tripped the check.

    `lines` is empty where the next suspicion is about the same line, and shows it. `advice`: what
    its author can do; empty where that is to wait.
    """

    check: str
    reason: str
    advice: str
    line: int | None
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, kw_only=True)
class CheckRow:
    """One check of an audit; `kind` is the class of its badge, `report` the tool's own words.

    Without a `required` one that passed, the audit verifies nothing.
    """

    name: str
    kind: str
    sign: str
    words: str
    reason: str
    duration_s: float
    report: str
    required: bool


@dataclass(frozen=True, kw_only=True)
class AuditView:
    """The report of an audit; `kernels` are the device functions that really ran."""

    checks: tuple[CheckRow, ...]
    kernels: tuple[str, ...]
    summary: str


@dataclass(frozen=True, kw_only=True)
class OutsideRow:
    """The supervisor's clock beside the claimed time of one workload, in ns.

    `claimed_ns` is None where nothing was claimed. `gate_ns` and `cpu_ns`: of calls on a CPU, None
    elsewhere. `bursts`: how many were timed on a GPU; `empty_ns`: what one adds beside its calls.
    """

    name: str
    hidden: bool
    claimed_ns: float | None
    bound_ns: float
    error_ns: float
    bursts: int
    gate_ns: float | None = None
    cpu_ns: float | None = None
    empty_ns: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the claimed time is not below what the supervisor saw at least."""
        return self.claimed_ns is None or self.claimed_ns >= self.bound_ns - self.error_ns


def suspicion_views(
    suspicions: Iterable[Mapping[str, Any]], source: str
) -> tuple[SuspicionView, ...]:
    """Encoded suspicions with excerpts of the source that they are about.

    Those about one line stand together, in the place of the first, above a single excerpt.
    """
    lines = source.splitlines()
    ordered = _by_line(suspicions)
    places = [each.get("line") for each in ordered]
    return tuple(
        SuspicionView(
            check=_CHECKS.get(each["check"], each["check"]),
            reason=each["reason"],
            advice=_ADVICE.get(each["check"], ""),
            line=line,
            lines=() if [line] == places[at + 1 : at + 2] else _excerpt(lines, line),
        )
        for at, (each, line) in enumerate(zip(ordered, places, strict=True))
    )


def audit_view(document: Mapping[str, Any]) -> AuditView | None:
    """The audit of an encoded result; None if there was none."""
    audit = document.get("audit")
    if not audit:
        return None
    required = audit.get("required", ())
    checks = tuple(_check_row(each, each["name"] in required) for each in audit["checks"])
    counts = [(row.words, sum(r.words == row.words for r in checks)) for row in checks]
    summary = ", ".join(f"{count} {words.lower()}" for words, count in dict(counts).items())
    return AuditView(checks=checks, kernels=tuple(audit.get("kernels", ())), summary=summary)


def outside_rows(document: Mapping[str, Any]) -> list[OutsideRow]:
    """The workloads that the supervisor timed from outside, in the result's order."""
    return [
        OutsideRow(
            name=workload["name"],
            hidden=bool(workload.get("hidden")),
            claimed_ns=_claimed_ns(workload),
            bound_ns=float(outside["bound_ns"]),
            error_ns=float(outside["error_ns"]),
            bursts=len(outside.get("bursts", ())),
            gate_ns=outside.get("gate_ns"),
            cpu_ns=outside.get("cpu_ns"),
            empty_ns=outside.get("null_intercept_ns"),
        )
        for workload in document.get("workloads", [])
        if (outside := workload.get("outside"))
    ]


def _claimed_ns(workload: Mapping[str, Any]) -> float | None:
    """What the kernel's process claimed: the time itself, unless that was raised."""
    raised = workload.get("claimed_ns")
    measured = (workload.get("measurement") or {}).get("time_ns")
    return measured if raised is None else raised


def _by_line(suspicions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    groups: dict[object, list[Mapping[str, Any]]] = {}
    for place, each in enumerate(suspicions):
        line = each.get("line")
        groups.setdefault(("none", place) if line is None else line, []).append(each)
    return [each for group in groups.values() for each in group]


def _excerpt(lines: list[str], line: int | None) -> tuple[SourceLine, ...]:
    if line is None or not 1 <= line <= len(lines):
        return ()
    first, last = max(line - _CONTEXT_LINES, 1), min(line + _CONTEXT_LINES, len(lines))
    return tuple(
        SourceLine(number=number, text=lines[number - 1][:_LONGEST_LINE], tripped=number == line)
        for number in range(first, last + 1)
    )


def _check_row(check: Mapping[str, Any], required: bool) -> CheckRow:  # noqa: FBT001
    kind, sign, words = _STATES.get(check["state"], ("", "–", check["state"]))
    return CheckRow(
        name=check["name"],
        kind=kind,
        sign=sign,
        words=words,
        reason=check["reason"],
        duration_s=float(check.get("duration_s", 0.0)),
        report=check.get("report", ""),
        required=required,
    )
