"""What a kernel can be begun from, as far as somebody may read it."""

from __future__ import annotations

from gpu_runner.data.verdict import Mode
from runs_app.models import Device, Evaluation, Submission
from runs_app.work.access import visible_evaluations
from tasks_app.models import TaskVersion
from tasks_app.people import Viewer

_OWN_SHOWN = 5
_LOOKED_AT = 20  # newest evaluations; several may be of one submission


def own_latest(
    version: TaskVersion, direction: str, device: Device, user: Viewer
) -> list[Evaluation]:
    """The newest evaluation of each of the last submissions of `user` to this problem."""
    if user.pk is None:
        return []
    rows = visible_evaluations(user).filter(
        submission__author_id=user.pk,
        task_version=version,
        direction=direction,
        device=device,
    )
    entered = rows.exclude(submission__origin=Submission.Origin.RUN).exclude(mode=Mode.AUDIT.value)
    found: dict[object, Evaluation] = {}
    for row in entered.order_by("-created_at")[:_LOOKED_AT]:
        found.setdefault(row.submission_id, row)
    return list(found.values())[:_OWN_SHOWN]
