"""What a source changed against its author's last, and against the leader of its board."""

from __future__ import annotations

from dataclasses import dataclass

from runs_app.core.integrity.eligibility import leader
from runs_app.models import Evaluation, Submission
from runs_app.submitting.selectors import last_before
from tasks_app.pages.text_diff import Budget, TextDiff, diff
from tasks_app.people import Viewer


@dataclass(frozen=True, kw_only=True)
class SourceDifference:
    """From another submission's source to this one's."""

    name: str
    other: Submission
    diff: TextDiff

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.diff.added and not self.diff.removed


def differences(evaluation: Evaluation, user: Viewer) -> list[SourceDifference]:
    """Against those that there are, and that `user` may read; each submission once."""
    submission = evaluation.submission
    own = submission.author_id == user.pk
    last = last_before(submission, user)
    first = leader(evaluation.task_version, evaluation.direction, evaluation.device_id)
    others = [("your last" if own else "its author's last", last)]
    others.append(("the leader", first.submission if first else None))
    budget, seen, found = Budget(), {submission.pk}, []
    for name, other in others:
        if other is not None and other.pk not in seen:
            seen.add(other.pk)
            text = diff(other.solution.whole, submission.solution.whole, budget)
            found.append(SourceDifference(name=name, other=other, diff=text))
    return found
