"""Empty a device's queue: what waits is canceled with a reason that its owners read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from gpu_runner.data.queue import OF_PEOPLE, Urgency
from runs_app.core.errors import SubmissionError, WrongState
from runs_app.core.messaging import queues
from runs_app.core.work import lifecycle
from runs_app.core.work.admins import check_admin, checked_reason
from runs_app.features.operations.models import Emptying
from runs_app.models import Device, Evaluation, Run, Status, TaskCheck
from runs_app.optimiser.services import end as run_end
from runs_app.submitting.quota import EMPTIED
from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry

EMPTY_FUNCTION = "runs_app.features.operations.jobs.empty_queue"
_TIMEOUT_S = 300
BATCH = 100
"""So many jobs are canceled in one transaction: two seconds, for which a run's step may wait."""
_STANDS_STILL = timedelta(seconds=30)


def enqueue_emptying(emptying_id: object) -> bool:
    """Queue the next batch of an emptying; a second job does no harm.

    False if Redis could not be reached: then `take_up` queues it later.
    """
    return queues.enqueue_behind_steps(EMPTY_FUNCTION, emptying_id, timeout_s=_TIMEOUT_S)


class Part(StrEnum):
    """A part of a device's queue, by who waits for it."""

    PEOPLE = "people"
    RUNS = "runs"
    AUDITS = "audits"
    BACKGROUND = "background"
    CHECKS = "checks"


CONSEQUENCES = {
    Part.PEOPLE: (
        "Submissions and re-runs end as canceled, with your reason. They don't count "
        "against anybody's daily limit, and their authors can re-run them."
    ),
    Part.RUNS: "Runs are paused with your reason, and their waiting candidates are canceled."
    " A resumed run measures them again, and each counts as another evaluation. Final"
    " rankings of challenges are canceled, too.",
    Part.AUDITS: "Audits end without an outcome. The results stay unverified until an admin"
    " asks for another audit.",
    Part.BACKGROUND: (
        "The site's own kernels and re-evaluations are canceled. You can measure them "
        "again on their task's page."
    ),
    Part.CHECKS: "Checks of drafts and tasks are canceled. Anyone who asked for one can ask again.",
}
"""What happens to the jobs of each part."""

_EVALUATIONS = {
    Part.PEOPLE: Evaluation.waits_as(*OF_PEOPLE),
    Part.RUNS: Evaluation.waits_as(Urgency.RUNS),
    Part.AUDITS: Evaluation.waits_as(Urgency.AUDITS),
    Part.BACKGROUND: Evaluation.waits_as(Urgency.BACKGROUND),
}


@dataclass(frozen=True)
class Waiting:
    """How many jobs of a part wait on a device, and what emptying does to them."""

    part: Part
    count: int
    consequence: str


def waiting_parts(device: Device, now: datetime) -> list[Waiting]:
    """What could be emptied now."""
    return [Waiting(part, _waiting(device, part, now).count(), CONSEQUENCES[part]) for part in Part]


@transaction.atomic
def empty_queue(
    *, device: Device, parts: Collection[Part], reason: str, user: User, now: datetime
) -> Emptying:
    """Have all that waits in these parts cancelled by a worker, a batch at a time.

    What runs goes on, and what is queued later stays. Raises `SubmissionError` without a part or
    a reason, and `WrongState` while the device's queue is being emptied.
    """
    check_admin(user)
    if not parts:
        raise SubmissionError("parts", "choose what to cancel")
    why = checked_reason(reason, "reason")
    Device.objects.select_for_update(no_key=True).get(pk=device.pk)
    if device.emptyings.filter(finished_at=None).exists():
        raise WrongState("", "this queue is already being emptied; wait until it's done")
    counts = {part.value: _waiting(device, part, now).count() for part in parts}
    made = Emptying.objects.create(
        device=device,
        parts=list(counts),
        reason=why,
        made_by=user,
        created_at=now,
        moved_at=now,
        waiting=sum(counts.values()),
    )
    details = {"device": device.name, "waiting": counts}
    add_entry(
        AuditEntry.Kind.EMPTIED,
        now=now,
        actor=user,
        about=device.short_name,
        reason=why,
        details=details,
    )
    transaction.on_commit(lambda: enqueue_emptying(made.pk))
    return made


@transaction.atomic
def cancel_some(*, emptying_id: int, now: datetime) -> bool:
    """Cancel the next batch; whether there may be more. Twice at once, or again, does no harm."""
    rows = Emptying.objects.select_for_update(of=("self",)).select_related("device")
    row = rows.filter(pk=emptying_id, finished_at=None).first()
    if row is None:
        return False
    why = f"{EMPTIED}: {row.reason}"
    if Part.RUNS in row.parts:
        _pause_runs(row.device, why, row.created_at, now)
    left = BATCH
    for part in map(Part, row.parts):
        waiting = _waiting(row.device, part, row.created_at)
        keys = list(waiting.order_by("queued_at", "pk").values_list("pk", flat=True)[:left])
        left -= len(keys)
        # Locked in the order in which events of runners lock them.
        for job in waiting.filter(pk__in=keys).order_by("pk").select_for_update(of=("self",)):
            job.reason = why
            lifecycle.cancel(job, reason=why, now=now)
            row.cancelled += 1
    row.moved_at = now
    row.finished_at = now if left == BATCH else None
    row.save(update_fields=["cancelled", "moved_at", "finished_at"])
    return row.finished_at is None


def take_up(*, now: datetime) -> int:
    """Queue what has stood still, because its worker was killed or Redis was away; how many."""
    still = Emptying.objects.filter(finished_at=None, moved_at__lt=now - _STANDS_STILL)
    keys = list(still.values_list("pk", flat=True))
    for key in keys:
        enqueue_emptying(key)
    Emptying.objects.filter(pk__in=keys).update(moved_at=now)
    return len(keys)


def _pause_runs(device: Device, reason: str, until: datetime, now: datetime) -> None:
    """Pause runs that wait for this device, so that they ask for nothing more there."""
    waiting = _waiting(device, Part.RUNS, until).values("submission__run")
    running = Run.objects.filter(status=Run.Status.RUNNING, pk__in=waiting)
    for run in running.select_for_update(of=("self",)).order_by("pk"):
        run_end.pause(run, by="an admin", reason=reason, now=now)
        run.save()


def _waiting(device: Device, part: Part, until: datetime) -> QuerySet[Any]:
    """Jobs of a part that wait, and were queued by then."""
    waits = Q(device=device, status=Status.QUEUED, queued_at__lte=until)
    if part is Part.CHECKS:
        return TaskCheck.objects.filter(waits)
    return Evaluation.objects.filter(waits, _EVALUATIONS[part]).select_related("submission")
