"""What advice does at the core's hooks: its part of pages, and answers that are read."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.dispatch import receiver
from django.template.context import Context

from runs_app.core.hooks import Filling, Slot, call_done, fills, tick
from runs_app.features.advice.page import judgements_part
from runs_app.features.advice.services import settle_call, settle_ended
from tasks_app.models import Draft, TaskVersion

_SETTLING = timedelta(seconds=10)  # a younger answer is read by the command that asked


@fills(Slot.SOUNDNESS)
def _of_version(context: Context, version: TaskVersion) -> Filling:
    """What language models said of a version that the user may see."""
    return Filling("advice/parts/judgements.html", vars(judgements_part(version, context["user"])))


@fills(Slot.DRAFT)
def _of_draft(context: Context, draft: Draft) -> Filling:
    """What they said of a draft that is open to the user."""
    return Filling("advice/parts/judgements.html", vars(judgements_part(draft, context["user"])))


@receiver(call_done)
def _read(sender: object, call_id: str, **_: object) -> None:
    """Read the answer, if it is a judgement of a task."""
    settle_call(call_id=call_id)


@receiver(tick)
def _read_ended(sender: object, now: datetime, **_: object) -> None:
    """Read answers whose command has not lived to read them."""
    settle_ended(before=now - _SETTLING)
