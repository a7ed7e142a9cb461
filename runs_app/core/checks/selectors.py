"""Checks of task versions, and what of them may be shown to whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Prefetch, QuerySet

from runs_app.models import UNDER_WAY, Status, TaskCheck
from tasks_app.disclosure import public_text, sees_hidden
from tasks_app.models import Draft, TaskVersion
from tasks_app.people import Viewer

KEPT_BACK = "only admins see why, because the reason may reveal the task's hidden workloads"
"""What others are shown in the place of such a reason."""

_DAY = timedelta(days=1)
_LEAST_S = 60.0  # that a check counts for, however soon it ended
_CAN_BE_CHECKED = (Draft.State.OPEN, Draft.State.REVIEW)


@dataclass(frozen=True)
class CheckEntry:
    """A check that runs or waits, in a device's queue.

    `waited_s` ended when it began. `check` is None where the viewer may not know which task it is
    of; `draft` is one that they may open. `note` says what it is at, or why it was tried again.
    """

    is_running: bool
    waited_s: float
    check: TaskCheck | None
    draft: Draft | None
    note: str


@dataclass(frozen=True)
class CheckTime:
    """How long a user's checks may hold devices in 24 hours, and what is left of it, in minutes."""

    limit: int
    left: int


def check_time(user: User, now: datetime) -> CheckTime:
    """What of it `user` has left; a check that ended at once, or was cancelled, took a minute."""
    rows = TaskCheck.objects.filter(asked_by=user, created_at__gt=now - _DAY).order_by()
    used_s = sum(
        max(((finished or now) - started).total_seconds() if started else 0.0, _LEAST_S)
        for started, finished in rows.values_list("started_at", "finished_at")
    )
    limit: int = settings.MAX_CHECK_MINUTES_PER_DAY
    return CheckTime(limit=limit, left=max(limit - ceil(used_s / 60), 0))


def may_check(version: TaskVersion, user: Viewer) -> bool:
    """Whether `user` may have it checked: admins, and who works on a draft of exactly this."""
    if sees_hidden(user):
        return True
    drafts = version.drafts.filter(state__in=_CAN_BE_CHECKED)
    return user.is_active and any(draft.open_to(user) for draft in drafts)


def may_cancel(check: TaskCheck, user: Viewer) -> bool:
    """Whether `user` may end a check that is under way: who asked for it, and admins."""
    return not check.is_over and (sees_hidden(user) or check.asked_by_id == user.pk)


def find_check(check_id: UUID | str, user: Viewer) -> TaskCheck | None:
    """The check, or None if there is none that `user` may know of."""
    check = _with_names(TaskCheck.objects.filter(pk=check_id)).first()
    return check if check is not None and _knows_of(check, user) else None


def _knows_of(check: TaskCheck, user: Viewer) -> bool:
    """Whether `user` may know what is checked: admins, who asked, and authors of drafts of it."""
    if sees_hidden(user) or (user.pk is not None and check.asked_by_id == user.pk):
        return True
    return any(draft.seen_by(user) for draft in check.version.drafts.all())


def check_entries(device_slug: str, user: Viewer, now: datetime) -> list[CheckEntry]:
    """The checks that run or wait on a device, as `user` may see them; those that run come first.

    They are taken in turn with what people submit.
    """
    rows = TaskCheck.objects.filter(device_id=device_slug, status__in=UNDER_WAY)
    drafts = Prefetch("version__drafts", Draft.objects.defer("files"))
    ordered = _with_names(rows).prefetch_related(drafts).order_by("queued_at", "pk")
    return _entries(sorted(ordered, key=lambda check: check.status != Status.RUNNING), user, now)


def _entries(checks: Iterable[TaskCheck], user: Viewer, now: datetime) -> list[CheckEntry]:
    entries = []
    for check in checks:
        is_running, known = check.status == Status.RUNNING, _knows_of(check, user)
        drafts = (draft for draft in check.version.drafts.all() if draft.seen_by(user))
        note = check_stage(check, user) if is_running else check_reason(check, user)
        waited = (check.started_at or now) - check.queued_at
        entries.append(
            CheckEntry(
                is_running=is_running,
                waited_s=max(waited.total_seconds(), 0.0),
                check=check if known else None,
                draft=next(drafts, None),
                note=note if known else "",
            )
        )
    return entries


def check_reason(check: TaskCheck, user: Viewer) -> str:
    """Why it has no report, or was tried again, as `user` may see it.

    The words of a task's own code could give away sizes of hidden workloads, not only names.
    """
    if not check.reason or not check.version.hidden_names or _sees_all(check, user):
        return check.reason
    return KEPT_BACK


def check_stage(check: TaskCheck, user: Viewer) -> str:
    """What its runner is at, as `user` may see it."""
    hidden = () if _sees_all(check, user) else check.version.hidden_names
    return public_text(check.stage, hidden)


def _sees_all(check: TaskCheck, user: Viewer) -> bool:
    """Whether `user` may see hidden workloads: admins, and those to whom a draft of it is open.

    Who asked had the whole version before them then; that it was edited or taken over since makes
    other versions of it.
    """
    asked = user.pk is not None and check.asked_by_id == user.pk
    return sees_hidden(user) or asked or any(d.open_to(user) for d in check.version.drafts.all())


def _with_names(rows: QuerySet[TaskCheck]) -> QuerySet[TaskCheck]:
    return rows.select_related("device", "asked_by", "runner", "version__task")
