"""What a result or its source is compared with: the leader, and its author's one before."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.integrity.eligibility import leader
from runs_app.core.work.access import visible_evaluations, visible_submissions
from runs_app.models import Evaluation, Submission
from tasks_app.pages.text_diff import Budget, TextDiff, diff
from tasks_app.people import Viewer


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Another correct result of the same problem and device, to be compared with."""

    name: str
    phrase: str
    evaluation: Evaluation
    is_leader: bool = False


def rivals(evaluation: Evaluation, user: Viewer) -> list[Rival]:
    """The leader of its board, and the last result of its mode that its author had before it.

    The leader stands with its result of the same mode, or else with its ranked one.
    """
    found = []
    first = leader(evaluation.task_version, evaluation.direction, evaluation.device_id)
    if first is not None:
        alike = visible_evaluations(user).filter(
            submission=first.submission,
            device=evaluation.device_id,
            mode=evaluation.mode,
            verdict=Verdict.CORRECT.value,
        )
        if evaluation.mode != Mode.RANKED:
            first = alike.order_by("-created_at").first() or first
        name = "Leader" if first.mode == evaluation.mode else "Leader, ranked"
        found.append(Rival(name=name, phrase="the leader", evaluation=first, is_leader=True))
    before = before_of(evaluation, user)
    if before is not None and (first is None or before.pk != first.pk):
        whose = "Your" if before.submission.author_id == user.pk else "Its author's"
        phrase = f"{whose.lower()} previous result"
        found.append(Rival(name=f"{whose} last", phrase=phrase, evaluation=before))
    return found


def before_of(evaluation: Evaluation, user: Viewer) -> Evaluation | None:
    """The last correct result of another submission of its author and agent in the same mode."""
    submission = evaluation.submission
    rows = visible_evaluations(user).filter(
        submission__author_id=submission.author_id,
        submission__agent_id=submission.agent_id,
        submission__run=None,
        submission__created_at__lt=submission.created_at,
        task_version=evaluation.task_version_id,
        device=evaluation.device_id,
        direction=evaluation.direction,
        mode=evaluation.mode,
        verdict=Verdict.CORRECT.value,
    )
    return rows.order_by("-submission__created_at", "-created_at").first()


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
    """Against its usual others."""
    budget, whole = Budget(), evaluation.submission.solution.whole
    return [
        SourceDifference(name=name, other=each, diff=diff(each.solution.whole, whole, budget))
        for name, each in usual_others(evaluation, user)
    ]


def usual_others(evaluation: Evaluation, user: Viewer) -> list[tuple[str, Submission]]:
    """Its author's last and the leader: those that `user` may read; each submission once."""
    submission = evaluation.submission
    own = submission.author_id == user.pk
    last = _last_before(submission, user)
    first = leader(evaluation.task_version, evaluation.direction, evaluation.device_id)
    others = [("your last" if own else "its author's last", last)]
    others.append(("the leader", first.submission if first else None))
    unique = {other.pk: (name, other) for name, other in reversed(others) if other is not None}
    unique.pop(submission.pk, None)
    return list(reversed(unique.values()))


def _last_before(submission: Submission, user: Viewer) -> Submission | None:
    """The submission that its author and agent entered before it for the same problem."""
    rows = visible_submissions(user).filter(
        author_id=submission.author_id,
        agent_id=submission.agent_id,
        task_version=submission.task_version_id,
        direction=submission.direction,
        language=submission.language,
        created_at__lt=submission.created_at,
        run=None,
    )
    return rows.order_by("-created_at").first()
