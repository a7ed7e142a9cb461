"""The way from a result to what limits its kernel: its profile, or the action that makes one."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.work.access import visible_evaluations
from runs_app.models import Evaluation, Status, Submission
from tasks_app.people import Viewer

ANCHOR = "#h-profile"
"""The heading of a profile on the page of its evaluation."""


@dataclass(frozen=True, kw_only=True)
class ProfileStep:
    """A link, or without an address a button that measures the submission again."""

    words: str
    address: str = ""


def profile_step(
    evaluation: Evaluation, result: EvaluationResult | None, user: Viewer, *, is_mine: bool
) -> ProfileStep | None:
    """What leads from a correct result to its kernel's profile; None from a profile itself."""
    is_profile = evaluation.mode == Mode.PROFILE or bool(result and result.profile)
    if not evaluation.is_correct or is_profile:
        return None
    rows = visible_evaluations(user).filter(
        submission=evaluation.submission_id, device=evaluation.device_id, mode=Mode.PROFILE.value
    )
    for row in rows.order_by("-created_at"):
        address = f"{evaluation.submission.get_absolute_url()}?evaluation={row.pk}"
        if row.verdict == Verdict.CORRECT:
            return ProfileStep(words="See what limits this kernel", address=f"{address}{ANCHOR}")
        if row.status in (Status.QUEUED, Status.RUNNING):
            return ProfileStep(words="Its profile is being made", address=address)
    return _action(evaluation, is_mine=is_mine)


def _action(evaluation: Evaluation, *, is_mine: bool) -> ProfileStep | None:
    submission, version = evaluation.submission, evaluation.task_version
    if version.task.current_version_id != version.pk:
        return None
    words = "Find out what limits this kernel"
    is_entered = submission.origin not in (Submission.Origin.RUN, Submission.Origin.IMPORTED)
    if is_mine and is_entered and not submission.budgeted:
        return ProfileStep(words=words)
    wanted = {"submission": submission.pk, "mode": Mode.PROFILE.value}
    if not evaluation.imported:
        wanted["device"] = evaluation.device_id
    return ProfileStep(words=words, address=f"{reverse('submit')}?{urlencode(wanted)}")
