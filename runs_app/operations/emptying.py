"""Empty a device's queue: what waits is cancelled with a reason that its owners read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from gpu_runner.data.verdict import Mode
from runs_app.errors import SubmissionError
from runs_app.models import Device, Evaluation, Run, Status, Submission, TaskCheck
from runs_app.operations.services import check_admin, checked_reason
from runs_app.optimisation.services import end as run_end
from runs_app.submissions.quota import EMPTIED
from runs_app.work import lifecycle
from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry

AT_ONCE = 2000
"""So many jobs are cancelled in one transaction; the page says how many are left."""


class Part(StrEnum):
    """A part of a device's queue, by who waits for it."""

    PEOPLE = "people"
    RUNS = "runs"
    AUDITS = "audits"
    BACKGROUND = "background"
    CHECKS = "checks"


CONSEQUENCES = {
    Part.PEOPLE: "Submissions and re-runs end as cancelled, with your reason. They do not count"
    " against anybody's day. Their authors can have them measured again.",
    Part.RUNS: "Runs are paused with your reason, and their waiting candidates are cancelled."
    " A run that is resumed has them measured again. Each then counts as an evaluation again.",
    Part.AUDITS: "Audits end without an outcome. The places stay unverified until an admin asks"
    " for another audit.",
    Part.BACKGROUND: "The site's own kernels and re-evaluations are cancelled. Measure them again"
    " on the page of their task.",
    Part.CHECKS: "Checks of drafts and tasks are cancelled. Whoever asked can ask again.",
}
"""What happens to the jobs of each part."""

_RUN = Submission.Origin.RUN
_EVALUATIONS = {
    Part.PEOPLE: Q(background=False) & ~Q(submission__origin=_RUN) & ~Q(mode=Mode.AUDIT.value),
    Part.RUNS: Q(background=False, submission__origin=_RUN),
    Part.AUDITS: Q(mode=Mode.AUDIT.value),
    Part.BACKGROUND: Q(background=True) & ~Q(mode=Mode.AUDIT.value),
}


@dataclass(frozen=True)
class Waiting:
    """How many jobs of a part wait on a device, and what emptying does to them."""

    part: Part
    count: int
    consequence: str


def waiting_parts(device: Device) -> list[Waiting]:
    """What could be emptied now."""
    counts = {part: _rows(device, part).count() for part in _EVALUATIONS}
    counts[Part.CHECKS] = _checks(device).count()
    return [Waiting(part, counts[part], CONSEQUENCES[part]) for part in Part]


@transaction.atomic
def empty_queue(
    *, device: Device, parts: Collection[Part], reason: str, user: User, now: datetime
) -> int:
    """Cancel what waits in these parts, `AT_ONCE` jobs at most; how many were cancelled.

    What runs goes on. Raises `SubmissionError` without a part or a reason.
    """
    check_admin(user)
    if not parts:
        raise SubmissionError("parts", "choose what to cancel")
    why = f"{EMPTIED}: {checked_reason(reason, 'reason')}"
    if Part.RUNS in parts:
        _pause_runs(device, why, now)
    counts: dict[str, int] = {}
    left = AT_ONCE
    for part in parts:
        rows = _checks(device) if part is Part.CHECKS else _rows(device, part)
        jobs = list(rows.select_for_update(of=("self",)).order_by("queued_at", "pk")[:left])
        for job in jobs:
            job.reason = why
            lifecycle.cancel(job, reason=why, now=now)
        counts[part.value] = len(jobs)
        left -= len(jobs)
    details = {"device": device.slug, "cancelled": counts}
    add_entry(
        AuditEntry.Kind.EMPTIED,
        now=now,
        actor=user,
        about=device.slug,
        reason=checked_reason(reason, "reason"),
        details=details,
    )
    return AT_ONCE - left


def _pause_runs(device: Device, reason: str, now: datetime) -> None:
    """Pause runs that wait for this device, so that they ask for nothing more there."""
    waiting = _rows(device, Part.RUNS).values("submission__run")
    running = Run.objects.filter(status=Run.Status.RUNNING, pk__in=waiting)
    for run in running.select_for_update(of=("self",)).order_by("pk"):
        run_end.pause(run, by="an admin", reason=reason, now=now)
        run.save()


def _rows(device: Device, part: Part) -> QuerySet[Evaluation]:
    rows = Evaluation.objects.filter(_EVALUATIONS[part], device=device, status=Status.QUEUED)
    return rows.select_related("submission")


def _checks(device: Device) -> QuerySet[TaskCheck]:
    return TaskCheck.objects.filter(device=device, status=Status.QUEUED)
