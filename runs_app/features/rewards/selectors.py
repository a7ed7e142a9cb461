"""One number for each submission, and why it isn't higher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.http import Http404

from gpu_runner.data.verdict import Verdict
from runs_app.core.work.access import public_reason
from runs_app.core.work.result_state import QUARANTINED, REJECTED, result_state
from runs_app.models import Evaluation, Status, Submission
from runs_app.submitting.status_api import latest_evaluations
from tasks_app.people import Viewer


@dataclass(frozen=True)
class Reward:
    """What a search learns from an evaluation; see `RewardOut` of the API."""

    value: float | None
    reason: str


def own_evaluations(user: Viewer, wanted: Sequence[UUID]) -> list[Evaluation]:
    """The newest evaluation of each of these submissions of `user`, in this order.

    Raises `Http404` for the first that isn't the user's.
    """
    own = list(Submission.objects.filter(author_id=user.pk, pk__in=set(wanted)).only("pk"))
    found = latest_evaluations(own, user)
    missing = next((key for key in wanted if key not in found), None)
    if missing is not None:
        raise Http404(f"you have no submission {missing}")
    return [found[key] for key in wanted]


def reward_of(evaluation: Evaluation, user: Viewer) -> Reward:
    """Its reward; None while it isn't over, and whenever the kernel isn't to blame."""
    reason = public_reason(evaluation, user)
    if not evaluation.is_over:
        return Reward(None, reason)
    if evaluation.status == Status.CANCELLED or evaluation.verdict == Verdict.SYSTEM_ERROR:
        return Reward(None, reason)
    if not evaluation.is_correct:
        return Reward(0.0, reason)
    if (state := result_state(evaluation)) in (QUARANTINED, REJECTED):
        return Reward(0.0, f"{state.label}: {state.meaning}")
    if evaluation.rated is None:
        return Reward(None, "It is correct, but there is no baseline to compare it with yet.")
    return Reward(evaluation.rated, reason)


def seconds_of(evaluation: Evaluation) -> float | None:
    """How long a runner had it; None before its end, or if none has begun with it."""
    begun, ended = evaluation.started_at, evaluation.finished_at
    return (ended - begun).total_seconds() if begun and ended else None
