"""Have a runner check a task version, or have it stop; and take its report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.kernelbench import with_workloads
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind
from runs_app.core.checks.selectors import check_time, may_cancel, may_check
from runs_app.core.work import lifecycle
from runs_app.models import UNDER_WAY, Device, Status, TaskCheck
from tasks_app.errors import CurationError
from tasks_app.formats.loader import report_of
from tasks_app.formats.soundness_report import LARGEST
from tasks_app.models import AuditEntry, Draft, TaskVersion
from tasks_app.people import role_of
from tasks_app.publishing.audit_log import add_entry
from tasks_app.publishing.services import record_report
from tasks_app.publishing.snapshots import take_varied

_MOST_WORKLOADS = 8  # chosen: more than a runner adds to a file


@transaction.atomic
def request_check(*, version: TaskVersion, device: Device, user: User, now: datetime) -> TaskCheck:
    """Queue the making of a version's soundness report, and record it in the audit log.

    One that waits or runs on the device already is returned instead. Raises `CurationError` naming
    the field: for those who may not, for a device that the task has no workload for, and, of
    somebody who is no admin, for a second check at a time and where a day's time is used up.
    """
    if not may_check(version, user):
        raise CurationError("", "only admins and the draft's author can request a check")
    TaskVersion.objects.select_for_update(no_key=True).get(pk=version.pk)  # two requests take turns
    under_way = TaskCheck.objects.filter(status__in=UNDER_WAY)
    known = under_way.filter(version=version, device=device).first()
    if known is not None:
        return known
    _refuse_device(version, device)
    _refuse_more(user, now)
    check = TaskCheck(version=version, device=device, asked_by=user, created_at=now, queued_at=now)
    draft = _draft_of(version.drafts.all(), user)
    details = {"device": device.name, "check": str(check.pk)}
    add_entry(
        AuditEntry.Kind.CHECKED, version=version, draft=draft, actor=user, details=details, now=now
    )
    lifecycle.queue(check, now=now)
    return check


@transaction.atomic
def cancel_check(*, check: TaskCheck, user: User, now: datetime) -> None:
    """Take a check out of the queue, or stop it, and record it in the audit log.

    Raises `CurationError` where that cannot be.
    """
    locked = lifecycle.lock(TaskCheck, check.pk)
    if locked.is_over:
        raise CurationError("", f"this check is already {locked.get_status_display().lower()}")
    if not may_cancel(locked, user):
        raise CurationError("", "only admins and the person who requested a check can cancel it")
    locked.reason = f"canceled by {role_of(user, locked.asked_by_id)}"
    lifecycle.cancel(locked, reason=locked.reason, now=now)
    details = {"device": locked.device.name, "check": str(locked.pk)}
    add_entry(
        AuditEntry.Kind.CANCELLED,
        version=locked.version,
        draft=_draft_of(locked.version.made_in.all(), locked.asked_by),
        actor=user,
        details=details,
        now=now,
    )


@lifecycle.by_report
def finish(check: TaskCheck, document: object, now: datetime) -> None:
    """End it with the report that its runner has made; raises `DataError` for any other.

    With `workloads` it is about the version that has them, and the check is one of that version.
    """
    if not isinstance(document, dict):
        raise DataError("report", "is not a JSON object")
    if len(json.dumps(document)) > LARGEST:
        raise DataError("report", f"is larger than {LARGEST} bytes")
    task = check.version.data
    if "workloads" in document:
        task = with_workloads(task, _workloads(document.pop("workloads")))
    report = report_of(document)
    facts = {
        "task": (report.task, task.name),
        "digest": (report.digest, task.digest()),
        "device": (report.device, check.device_id),
    }
    for field, (found, expected) in facts.items():
        if found != expected:
            raise DataError(field, f"is {found!r}, expected {expected!r}")
    check.version = take_varied(version=check.version, data=task, user=check.asked_by, now=now)
    record_report(check.version, report, now, made_here=True)
    check.passed, check.reason = report.passed, ""
    lifecycle.end(check, Status.FINISHED, {}, now=now)


def _workloads(found: object) -> list[Workload]:
    if not isinstance(found, list) or len(found) > _MOST_WORKLOADS:
        raise DataError("workloads", f"must be a list of at most {_MOST_WORKLOADS}")
    return [codec.decode(Workload, each, f"workloads[{i}]") for i, each in enumerate(found)]


def _draft_of(drafts: Iterable[Draft], user: User) -> Draft | None:
    """The one of a version's drafts on which `user` works: their own, or else one open to them."""
    own = [draft for draft in drafts if draft.open_to(user)]
    return min(own, key=lambda draft: draft.author_id != user.pk, default=None)


def _refuse_device(version: TaskVersion, device: Device) -> None:
    kind = DeviceKind(device.kind)
    for direction in version.data.directions:
        if not version.data.workloads_for(kind, direction, hidden=False):
            reason = f"the task has no listed {direction} workload for a {kind} device"
            raise CurationError("device", reason)


def _refuse_more(user: User, now: datetime) -> None:
    """A check has its device to itself, so that others wait for those of one user."""
    if user.is_staff:
        return
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # two requests take turns
    other = TaskCheck.objects.filter(asked_by=user, status__in=UNDER_WAY).first()
    if other is not None:
        reason = (
            f"your check of {other.version} on {other.device} is under way, and you can have only "
            "one at a time: wait until it ends, or cancel it"
        )
        raise CurationError("", reason)
    time = check_time(user, now)
    if time.left == 0:
        reason = f"your checks have used {time.limit} minutes of device time in the last 24 hours"
        raise CurationError("", f"{reason}, which is the limit: try again later")
