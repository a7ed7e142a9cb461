"""Enter many kernels at once, so that one refusal doesn't cost the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from runs_app.core.errors import QuotaExceeded, SubmissionError
from runs_app.models import Submission
from runs_app.submitting.services import submit

_OF_ONE = ("source", "language", "entry", "files")
"""Fields in which one kernel may be wrong while others are right."""


@dataclass(frozen=True)
class Entered:
    """What came of one kernel: a submission, or a refusal. `later`: only the quota refused it."""

    submission: Submission | None = None
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
            taken = sum(each.submission is not None for each in entered)
            if not taken:
                raise
            reason = f"{refusal.reason}; {taken} of {len(kernels)} kernels were taken"
            left = len(kernels) - len(entered)
            return entered + [Entered(field=refusal.field, reason=reason, later=True)] * left
        except SubmissionError as refusal:
            if of_all := [pair for pair in refusal.every if pair[0] not in of_one]:
                raise type(refusal).of(of_all) from None
            entered.append(Entered(field=refusal.field, reason=refusal.reasons))
        else:
            entered.append(Entered(submission))
    return entered
