"""Stops, announcements and runners: what admins decide, each with an entry of the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from runs_app.core.errors import SubmissionError, WrongState
from runs_app.core.messaging import orders
from runs_app.core.work.admins import check_admin, checked_reason
from runs_app.core.work.limits import in_force
from runs_app.models import Announcement, Run, Runner
from runs_app.optimiser.services import end as run_end
from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry

_SUBJECTS = {Announcement.Kind.SUBMISSIONS: "submissions", Announcement.Kind.RUNS: "runs"}


@transaction.atomic
def announce(
    *, kind: Announcement.Kind, text: str, until: datetime | None, user: User, now: datetime
) -> Announcement:
    """Tell everybody, and stop what `kind` says; running runs are paused by a stop of runs.

    Raises `NotAllowed` for others than admins, `SubmissionError` for a text or an end that cannot
    be, and `WrongState` for what is stopped already.
    """
    check_admin(user)
    text = checked_reason(text, "text")
    if until is not None and until <= now:
        raise SubmissionError("until", "must be in the future")
    Announcement.objects.filter(kind=kind, ended_at=None, until__lte=now).update(ended_at=now)
    if kind in _SUBJECTS and in_force(now).filter(kind=kind).exists():
        raise WrongState("", f"{_SUBJECTS[kind]} are already stopped")
    made = Announcement.objects.create(
        kind=kind, text=text, until=until, made_by=user, created_at=now
    )
    paused = _pause_all(text, now) if kind == Announcement.Kind.RUNS else 0
    details = {"until": until.isoformat() if until else None, "paused": paused or None}
    if kind in _SUBJECTS:
        details["change"] = "stopped"
    _note(kind, user, now, reason=text, details=details)
    return made


@transaction.atomic
def end_announcement(*, announcement: Announcement, user: User, now: datetime) -> None:
    """Take it from the pages, and open again what it stopped; paused runs stay paused."""
    check_admin(user)
    if not in_force(now).filter(pk=announcement.pk).update(ended_at=now):
        raise WrongState("", "it has already ended")
    kind = Announcement.Kind(announcement.kind)
    change = "reopened" if kind in _SUBJECTS else "ended"
    _note(kind, user, now, reason="", details={"change": change})


def _pause_all(reason: str, now: datetime) -> int:
    """Pause each run that runs; what it has sent and queued comes to its end."""
    running = Run.objects.select_for_update(of=("self",)).filter(status=Run.Status.RUNNING)
    rows = list(running.order_by("pk"))
    for run in rows:
        run_end.pause(run, by="an admin", reason=f"an admin stopped all runs: {reason}", now=now)
        run.save()
    return len(rows)


@transaction.atomic
def steer(
    *, runner: Runner, wanted: Runner.Wanted, reason: str, user: User, now: datetime
) -> Runner:
    """Have a runner work, finish what it does, or give it back; takes effect within seconds."""
    check_admin(user)
    locked = (
        Runner.objects.select_for_update(of=("self",)).select_related("token").get(pk=runner.pk)
    )
    why = "" if wanted == Runner.Wanted.WORK else checked_reason(reason, "reason")
    if locked.wanted == wanted:
        raise WrongState("", f"{locked.name} has already been told to do that")
    before = locked.get_wanted_display()
    locked.wanted, locked.wanted_reason = wanted, why
    locked.save(update_fields=["wanted", "wanted_reason"])
    transaction.on_commit(lambda: orders.tell(locked))
    add_entry(
        AuditEntry.Kind.STEERED,
        now=now,
        actor=user,
        about=locked.name,
        reason=why,
        details={"wanted": f"from {before} to {locked.get_wanted_display()}"},
    )
    return locked


def _note(
    kind: Announcement.Kind,
    user: User,
    now: datetime,
    *,
    reason: str,
    details: Mapping[str, object],
) -> None:
    known = AuditEntry.Kind
    audit = known.SWITCHED if kind in _SUBJECTS else known.ANNOUNCED
    add_entry(
        audit,
        now=now,
        actor=user,
        about=_SUBJECTS.get(kind, "announcement"),
        reason=reason,
        details=details,
    )
