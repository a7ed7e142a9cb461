"""What advice does at the core's hooks: its part of pages, and answers that are read."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.dispatch import receiver
from django.template.context import Context

from runs_app.core.hooks import Filling, Slot, fills, tick
from runs_app.features.advice.page import judgements_part
from runs_app.features.advice.services import settle_call, settle_ended
from runs_app.optimiser.signals import call_done
from tasks_app.models import Draft, TaskVersion

_SETTLING = timedelta(seconds=10)  # a younger answer is read by the command that asked


@fills(Slot.SOUNDNESS)
@fills(Slot.DRAFT)
def _judgements(
    context: Context, version: TaskVersion | None = None, draft: Draft | None = None
) -> Filling:
    """What language models said of a version that the user may see, or of an open draft."""
    about = version or draft
    assert about is not None, "a slot passes one of them"
    return Filling("advice/parts/judgements.html", vars(judgements_part(about, context["user"])))


@receiver(call_done)
def _read(sender: object, call_id: str, **_: object) -> None:
    """Read the answer, if it is a judgement of a task."""
    settle_call(call_id=call_id)


@receiver(tick)
def _read_ended(sender: object, now: datetime, **_: object) -> None:
    """Read answers whose command has not lived to read them."""
    settle_ended(before=now - _SETTLING)
