"""Rank what has ended, and close challenges: the kernels that were ranked become public then."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode
from runs_app.core.integrity import audits
from runs_app.core.work import lifecycle
from runs_app.features.challenges.attempts import lock_entry
from runs_app.features.challenges.models import Challenge, Entry
from runs_app.features.challenges.selectors import best_evaluations, ranked_evaluations
from runs_app.models import UNDER_WAY, Submission

_FOR_BASELINES = timedelta(hours=1)  # chosen: a device measures a challenge's in minutes


def settle_challenges(*, now: datetime) -> int:
    """End entries whose time is over, rank those that have ended, close challenges.

    Returns how many entries and challenges were changed. The site calls it every few seconds.
    """
    overdue = Entry.objects.filter(state=Entry.State.RUNNING, deadline_at__lte=now)
    count = sum(_end_overdue(entry, now) for entry in overdue.order_by("pk"))
    ended = Entry.objects.filter(state=Entry.State.ENDED)
    count += sum(_rank(entry, now) for entry in ended.order_by("pk"))
    over = Challenge.objects.filter(closed_at=None, ends_at__lte=now)
    return count + sum(_close(challenge, now) for challenge in over.order_by("pk"))


def end_entry(entry: Entry, *, reason: str, now: datetime) -> Entry:
    """End an entry whose row is locked; it is ranked at once if nothing of it is under way."""
    entry.state, entry.ended_at, entry.reason = Entry.State.ENDED, now, reason
    entry.save(update_fields=["state", "ended_at", "reason"])
    _rank_locked(entry, now)
    return entry


@transaction.atomic
def _end_overdue(entry: Entry, now: datetime) -> bool:
    locked = lock_entry(entry)
    if locked.state != Entry.State.RUNNING:
        return False
    end_entry(locked, reason="its time ran out", now=now)
    return True


@transaction.atomic
def _rank(entry: Entry, now: datetime) -> bool:
    return _rank_locked(lock_entry(entry), now)


def _rank_locked(entry: Entry, now: datetime) -> bool:
    """Queue a ranked evaluation of the best kernel of each task; False while others run."""
    own = Submission.objects.filter(attempt__entry=entry)
    if entry.state != Entry.State.ENDED or own.filter(evaluations__status__in=UNDER_WAY).exists():
        return False
    device = entry.challenge.device
    for best in best_evaluations([entry.pk]).values():
        submission = Submission.objects.select_related("task_version").get(pk=best.submission_id)
        lifecycle.evaluate(  # who has ended the entry waits for it
            submission=submission, device=device, mode=Mode.RANKED, urgency=Urgency.RUNS, now=now
        )
    entry.state = Entry.State.RANKED
    entry.save(update_fields=["state"])
    return True


@transaction.atomic
def _close(challenge: Challenge, now: datetime) -> bool:
    """Publish what was ranked, once all of it has been measured.

    Records are audited as usual, and authors who lost first place on a board are notified.
    """
    locked = Challenge.objects.select_for_update(no_key=True).get(pk=challenge.pk)
    entries = locked.entries.all()
    ranked = ranked_evaluations(entries.values_list("pk", flat=True))
    waits = entries.exclude(state=Entry.State.RANKED).exists()
    if locked.closed_at or waits or ranked.filter(status__in=UNDER_WAY).exists():
        return False
    if now < locked.ends_at + _FOR_BASELINES and ranked.filter(awaits_baselines=True).exists():
        return False
    locked.closed_at = now
    locked.save(update_fields=["closed_at"])
    rows = list(ranked.select_related("task_version", "device"))
    with audits.watched({audits.board_of(row) for row in rows}, now=now):
        Submission.objects.filter(pk__in=[row.submission_id for row in rows]).update(private=False)
    return True
