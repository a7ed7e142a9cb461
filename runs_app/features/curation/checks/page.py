"""The part of a draft's page that has it checked and its kernels tried, and shows what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zlib import crc32

from django.contrib.auth.models import User
from django.utils.text import capfirst

from gpu_runner.data.verdict import Mode
from runs_app.core.checks.selectors import CheckTime, check_time
from runs_app.core.errors import SubmissionError
from runs_app.core.queue.selectors import DeviceQueue, queue_overview
from runs_app.features.curation.checks.dry_run import DRY_MODES
from runs_app.features.curation.checks.selectors import CheckView, Findings, draft_findings
from runs_app.models import Status
from runs_app.submitting.quota import Quota, quota
from tasks_app.disclosure import sees_hidden
from tasks_app.errors import CurationError
from tasks_app.models import Draft
from tasks_app.pages.soundness_page import ShownReport, whole
from tasks_app.people import Viewer

_MODES = {
    Mode.TEST: "Test: a few calls, to see whether it is correct",
    Mode.QUICK: "Quick: listed workloads only; is it correct, and roughly how fast?",
    Mode.RANKED: "Ranked: three or more processes, and hidden workloads; still not on any board",
}


@dataclass(frozen=True, kw_only=True)
class FindingsPart:
    """What came of checks and dry runs, and behind `say` what the form shows."""

    draft: Draft
    findings: Findings
    status: str
    status_key: str
    reports: Sequence[ShownReport]
    directed: bool
    say: bool = False  # whether the status is to be heard
    queues: Sequence[DeviceQueue] = ()
    device: str = ""
    mode: str = ""
    modes: Sequence[tuple[str, str]] = ()
    may_ask: bool = False
    quota: Quota | None = None
    time: CheckTime | None = None
    refused: str = ""  # what was not done
    refusal: CurationError | SubmissionError | None = None  # why


def findings_part(
    draft: Draft, user: User, now: datetime, asked: Mapping[str, str] | None = None
) -> FindingsPart:
    """All of that part; `asked` is what a form held that was refused, or is repeated."""
    results = results_part(draft, user, now)
    queues = queue_overview(user, now, most=0)
    fields = asked or {}
    return replace(
        results,
        queues=queues,
        device=fields.get("device") or _usual_device(queues, results.findings),
        mode=fields.get("mode") or DRY_MODES[0].value,
        modes=[(mode.value, _MODES[mode]) for mode in DRY_MODES],
        may_ask=draft.may_be_tried_by(user),
        quota=None if sees_hidden(user) else quota(user, now),
        time=None if sees_hidden(user) else check_time(user, now),
    )


def results_part(draft: Draft, user: Viewer, now: datetime) -> FindingsPart:
    """The part of it that changes while something is under way."""
    findings = draft_findings(draft, user, now)
    status = _status(findings)
    return FindingsPart(
        draft=draft,
        findings=findings,
        status=status,
        status_key=f"{crc32(status.encode()):08x}",
        reports=[whole(soundness) for soundness in findings.reports],
        directed=bool(findings.reports) and len(findings.reports[0].version.directions) > 1,
    )


def _usual_device(queues: list[DeviceQueue], findings: Findings) -> str:
    """Where it was checked last, or the first device that takes work."""
    if findings.checks:
        return findings.checks[0].check.device_id
    ready = next((queue for queue in queues if not queue.reason), None)
    first = ready or next(iter(queues), None)
    return first.device.slug if first else ""


def _status(findings: Findings) -> str:
    """One sentence that changes seldom, for those who hear the page."""
    parts = [f"a check {view.words}" for view in findings.checks_under_way]
    if trying := len(findings.dry_runs_under_way):
        kernels = "kernel is" if trying == 1 else "kernels are"
        parts.append(f"{trying} {kernels} being tried")
    if parts:
        return capfirst("; ".join(parts)) + "."
    if findings.checks:
        return f"Nothing is under way. {_ended(findings.checks[0])}"
    return "Nothing is under way."


def _ended(view: CheckView) -> str:
    check = view.check
    if check.status == Status.CANCELLED:
        words = "was canceled"
    elif check.passed is None:
        words = "ended without a report"
    else:
        words = "found it sound" if check.passed else "found problems"
    files = "" if view.is_present else " of earlier files"
    return f"The last check{files}, on {check.device}, {words}."
