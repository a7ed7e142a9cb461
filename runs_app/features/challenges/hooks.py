"""What challenges do at the core's hooks: tokens of entries, steps that time brings, and links."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.dispatch import receiver
from django.template.context import Context

from runs_app.core.hooks import Filling, Slot, fills, tick
from runs_app.features.challenges import bearer
from runs_app.features.challenges.models import Attempt, Entry
from runs_app.features.challenges.settle import settle_challenges
from runs_app.models import Device, Submission
from tasks_app.people import account_closing

assert bearer, "its import lets tokens of entries be found"


@receiver(tick)
def _settle(sender: object, now: datetime, **_: object) -> None:
    """Take all steps that time has brought."""
    settle_challenges(now=now)


@receiver(account_closing)
def _forget(sender: object, user: User, **_: object) -> None:
    """Keep what was measured, without what the agent said."""
    Entry.objects.filter(user=user).update(transcript="")


@fills(Slot.FOOTER)
def _link(context: Context) -> Filling:
    """Leads to all challenges."""
    return Filling("challenges/parts/link.html", {})


@fills(Slot.BOARDS)
def _button(context: Context, device: Device) -> Filling:
    """The same, as a button."""
    return Filling("challenges/parts/button.html", {})


@fills(Slot.SUBMISSION)
def _attempt(context: Context, submission: Submission, device: Device) -> Filling | None:
    """Of which entry a submission is an attempt."""
    attempt = Attempt.objects.filter(submission=submission).select_related("entry").first()
    if attempt is None:
        return None
    return Filling("challenges/parts/attempt.html", {"entry": attempt.entry})
