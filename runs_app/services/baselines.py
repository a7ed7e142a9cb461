"""See to it that a task's baselines are known on a device."""

from __future__ import annotations

from datetime import datetime

from gpu_runner.data.verdict import Mode
from runs_app import selectors
from runs_app.models import Device, Evaluation, Status, Submission
from runs_app.services.lifecycle import evaluate


def ensure_baselines(*, trial: Submission, device: Device, now: datetime) -> Evaluation | None:
    """Measure a trial with baselines, behind people's work, if nobody has measured any yet.

    None if there are some, or an evaluation that will bring them is under way.
    """
    version, direction = trial.task_version, trial.direction
    if selectors.baselines(version, device, direction).times_ns:
        return None
    coming = Evaluation.objects.filter(
        task_version=version,
        device=device,
        direction=direction,
        mode=Mode.RANKED.value,
        status__in=(Status.QUEUED, Status.RUNNING),
    )
    if coming.exists():
        return None
    return evaluate(submission=trial, device=device, mode=Mode.RANKED, now=now, background=True)
