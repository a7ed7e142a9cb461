"""Enter many kernels at once, so that one refusal doesn't cost the others, and say what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import Http404

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.errors import QuotaExceeded, SubmissionError
from runs_app.core.work.access import public_reason
from runs_app.core.work.result_state import QUARANTINED, REJECTED, result_state
from runs_app.models import Audited, BoardAudit, Evaluation, Status, Submission
from runs_app.submitting.services import submit
from runs_app.submitting.status_api import latest_evaluations
from tasks_app.people import Viewer

_OF_ONE = ("source", "language", "entry", "files")
"""Fields in which one kernel may be wrong while others are right."""


@dataclass(frozen=True)
class Entered:
    """What came of one kernel: its submission, or a refusal; `later` if only the quota did that."""

    id: UUID | None = None
    field: str = ""
    reason: str = ""
    later: bool = False


@transaction.atomic
def submit_many(
    kernels: Sequence[Mapping[str, Any]], *, device: str, **common: Any
) -> list[Entered]:
    """Submit kernels, each with what of `submit` is its own; the rest is what all have in common.

    Once the quota refuses one, the others aren't tried. Raises `QuotaExceeded` if it has no room
    for any, and `SubmissionError` for what is wrong with all of them.
    """
    of_one = _OF_ONE if device else (*_OF_ONE, "device")  # which then follows from the source
    entered: list[Entered] = []
    for kernel in kernels:
        try:
            submission = submit(**kernel, device=device, **common)
        except QuotaExceeded as refusal:
            taken = sum(each.id is not None for each in entered)
            if not taken:
                raise
            reason = f"{refusal.reason}; {taken} of {len(kernels)} kernels were accepted"
            left = len(kernels) - len(entered)
            return entered + [Entered(field=refusal.field, reason=reason, later=True)] * left
        except SubmissionError as refusal:
            if of_all := [pair for pair in refusal.every if pair[0] not in of_one]:
                raise type(refusal).of(of_all) from None
            entered.append(Entered(field=refusal.field, reason=refusal.reasons))
        else:
            entered.append(Entered(submission.pk))
    return entered


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


def refused_by_audits(evaluations: Sequence[Evaluation]) -> set[UUID]:
    """Those whose source an audit has refused on their device, in whatever mode they are."""
    digests = {each.submission.digest for each in evaluations}
    failed = BoardAudit.objects.filter(state=Audited.FAILED, submission__digest__in=digests)
    kernels = set(failed.values_list("submission__digest", "submission__task_version", "device"))
    return {
        each.pk
        for each in evaluations
        if (each.submission.digest, each.task_version_id, each.device_id) in kernels
    }


def reward_of(
    evaluation: Evaluation, user: Viewer, *, is_refused: bool
) -> tuple[float | None, str]:
    """Its reward with the reason; None until it is over, and whenever the kernel isn't to blame.

    is_refused: whether an audit has refused its source.
    """
    reason = public_reason(evaluation, user)
    if not evaluation.is_over:
        return None, reason
    if evaluation.status == Status.CANCELLED or evaluation.verdict == Verdict.SYSTEM_ERROR:
        return None, reason
    if not evaluation.is_correct:
        return 0.0, reason
    if is_refused:
        return 0.0, f"{REJECTED.label}: an audit of the same source failed."
    if (state := result_state(evaluation)) in (QUARANTINED, REJECTED):
        return 0.0, f"{state.label}: {state.meaning}"
    is_ranked = evaluation.mode == Mode.RANKED  # other modes may never get them
    if evaluation.awaits_baselines and is_ranked and not evaluation.imported:
        return None, "It is correct, but its baselines are still being measured."
    if evaluation.rated is None:
        return None, "It is correct, but there is no baseline to compare it with yet."
    return evaluation.rated, reason


def seconds_of(evaluation: Evaluation) -> float | None:
    """How long a runner had it; None before its end, or if none has begun with it."""
    begun, ended = evaluation.started_at, evaluation.finished_at
    return (ended - begun).total_seconds() if begun and ended else None
