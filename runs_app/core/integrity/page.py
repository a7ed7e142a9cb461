"""What pages show of suspicions, audits and the supervisor's own clock, ready to print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.http import HttpRequest

from gpu_runner.data.evaluation import EvaluationResult, WorkloadResult
from gpu_runner.data.facts import FactRow
from gpu_runner.data.integrity import Audit, AuditCheck, OutsideTime, Suspicion
from runs_app.core.files import Place, place_of, shown_files
from runs_app.core.integrity.eligibility import Why, eligibility
from runs_app.core.integrity.facts import facts_of
from runs_app.core.integrity.selectors import open_case_count, public_suspicions
from runs_app.core.work.access import find_submission
from runs_app.core.work.audit_state import board_audit
from runs_app.core.work.result_state import PROVISIONAL, result_state
from runs_app.models import BoardAudit, Evaluation, QuarantineDecision
from tasks_app.people import Viewer
from tasks_app.templatetags.source import ShownFile

_CONTEXT_LINES = 3
_LONGEST_LINE = 300

_CHECKS = {
    "source": "Source",
    "library": "Built library",
    "floor": "Physical limit",
    "luck": "Few fast calls",
    "clock": "Claimed times",
    "device": "Device state",
    "loaded": "Code that ran",
    "work": "Code that did the work",
    "audit": "Audit",
}
_OF_CODE = (
    "A re-run will raise the same suspicion. Fix the cause shown below, then submit the kernel "
    "again."
)
_OF_TIMES = (
    "A busy host can make times look suspicious. Run it again at a quieter time: the new result "
    "replaces this one."
)
_ADVICE = {
    **dict.fromkeys(("source", "library", "loaded", "work"), _OF_CODE),
    **dict.fromkeys(("luck", "clock"), _OF_TIMES),
}
_STATES = {
    "passed": ("good", "✓", "Passed"),
    "failed": ("bad", "✗", "Failed"),
    "suspicious": ("warn", "!", "Suspicious"),
    "skipped": ("", "–", "Skipped"),
    "inconclusive": ("", "?", "Inconclusive"),
}


def navigation(_: HttpRequest) -> dict[str, object]:
    """Gives each page the number of cases that wait, which only admins' pages then count."""
    return {"open_case_count": open_case_count}


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
    place: Place | None
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, kw_only=True)
class CheckRow:
    """One check of an audit with the words of its badge, whose class is `kind`.

    Without a `required` one that passed, the audit verifies nothing.
    """

    check: AuditCheck
    kind: str
    sign: str
    words: str
    required: bool


@dataclass(frozen=True, kw_only=True)
class AuditView:
    """The report of an audit; `kernels` are the device functions that actually ran."""

    checks: tuple[CheckRow, ...]
    kernels: tuple[str, ...]
    summary: str


@dataclass(frozen=True, kw_only=True)
class OutsideRow:
    """The supervisor's clock beside the claimed time of one workload; None if nothing was claimed.

    `holds`: whether that is not below what the supervisor saw at least.
    """

    workload: WorkloadResult
    clock: OutsideTime
    claimed_ns: float | None
    holds: bool


@dataclass(frozen=True, kw_only=True)
class IntegrityView:
    """What the page of an evaluation shows of its suspicions, its audit and the outside clock."""

    suspicions: tuple[SuspicionView, ...]
    hints: tuple[SuspicionView, ...]
    decisions: list[QuarantineDecision]
    eligibility: Why
    board_audit: BoardAudit | None
    audit_of_another: bool
    may_see_audit: bool
    audit_under_way: bool
    audit_report: AuditView | None
    facts: tuple[FactRow, ...]
    outside: list[OutsideRow]
    waits: bool


def integrity_view(
    evaluation: Evaluation, result: EvaluationResult | None, user: Viewer
) -> IntegrityView:
    """Of an evaluation with its result as the viewer, `user`, may see it."""
    files = shown_files(evaluation.submission)
    case = evaluation.quarantine_case
    audit = None
    if evaluation.mode in ("ranked", "audit"):
        audit = board_audit(evaluation.submission, evaluation.device_id)
    is_provisional = result_state(evaluation) is PROVISIONAL
    under_way = bool(audit and audit.evaluation and not audit.evaluation.is_over)
    facts = facts_of(audit)
    of_another = audit is not None and audit.submission_id != evaluation.submission_id
    return IntegrityView(
        suspicions=suspicion_views(public_suspicions(evaluation, result) if result else (), files),
        hints=suspicion_views(result.hints if result else (), files),
        decisions=list(case.decisions.select_related("decided_by")) if case else [],
        eligibility=eligibility(evaluation),
        board_audit=audit,
        audit_of_another=of_another,
        may_see_audit=audit is not None
        and (not of_another or find_submission(audit.submission_id, user) is not None),
        audit_under_way=under_way,
        audit_report=audit_view(result.audit if result else None),
        facts=facts.rows if facts and not of_another else (),
        outside=outside_rows(result.workloads if result else ()),
        waits=evaluation.quarantine == "open"
        or (evaluation.mode == "ranked" and (under_way or is_provisional)),
    )


def suspicion_views(
    suspicions: Iterable[Suspicion], files: Sequence[ShownFile]
) -> tuple[SuspicionView, ...]:
    """Suspicions with excerpts of the files that they are about.

    Those about one line stand together, in the place of the first, above a single excerpt.
    """
    lines = {file.name: file.text.splitlines() for file in files}
    ordered = _by_line(suspicions)
    places = [each.line and place_of(files, each.file, each.line) for each in ordered]
    return tuple(
        SuspicionView(
            check=_CHECKS[each.check],
            reason=each.reason,
            advice=_ADVICE.get(each.check, ""),
            place=place or None,
            lines=()
            if [place] == places[at + 1 : at + 2]
            else _excerpt(lines.get(each.file or next(iter(lines), ""), []), each.line),
        )
        for at, (each, place) in enumerate(zip(ordered, places, strict=True))
    )


def audit_view(audit: Audit | None) -> AuditView | None:
    """The audit of a result; None if there was none."""
    if not audit:
        return None
    checks = tuple(_check_row(each, each.name in audit.required) for each in audit.checks)
    counts = [(row.words, sum(r.words == row.words for r in checks)) for row in checks]
    summary = ", ".join(f"{count} {words.lower()}" for words, count in dict(counts).items())
    return AuditView(checks=checks, kernels=audit.kernels, summary=summary)


def outside_rows(workloads: Iterable[WorkloadResult]) -> list[OutsideRow]:
    """The workloads that the supervisor timed from outside, in the result's order."""
    return [_outside_row(each, each.outside) for each in workloads if each.outside]


def _outside_row(workload: WorkloadResult, clock: OutsideTime) -> OutsideRow:
    claimed_ns = workload.claimed_ns  # None unless the time was raised
    if claimed_ns is None and workload.measurement:
        claimed_ns = workload.measurement.time_ns
    holds = claimed_ns is None or claimed_ns >= clock.bound_ns - clock.error_ns
    return OutsideRow(workload=workload, clock=clock, claimed_ns=claimed_ns, holds=holds)


def _by_line(suspicions: Iterable[Suspicion]) -> list[Suspicion]:
    groups: dict[object, list[Suspicion]] = {}
    for place, each in enumerate(suspicions):
        at = ("none", place) if each.line is None else (each.file, each.line)
        groups.setdefault(at, []).append(each)
    return [each for group in groups.values() for each in group]


def _excerpt(lines: list[str], line: int | None) -> tuple[SourceLine, ...]:
    if line is None or not 1 <= line <= len(lines):
        return ()
    first, last = max(line - _CONTEXT_LINES, 1), min(line + _CONTEXT_LINES, len(lines))
    return tuple(
        SourceLine(number=number, text=lines[number - 1][:_LONGEST_LINE], tripped=number == line)
        for number in range(first, last + 1)
    )


def _check_row(check: AuditCheck, required: bool) -> CheckRow:  # noqa: FBT001
    kind, sign, words = _STATES[check.state]
    return CheckRow(check=check, kind=kind, sign=sign, words=words, required=required)
