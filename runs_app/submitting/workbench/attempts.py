"""What somebody has tried at a task so far: each attempt, and what it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.work.access import visible_evaluations
from runs_app.models import Device, Evaluation, Status, Submission
from tasks_app.models import TaskVersion
from tasks_app.pages.text_diff import Budget, TextDiff, diff
from tasks_app.people import Viewer

_SHOWN = 20
_FEWEST = 2  # speedups, of which a table says as much as a picture
_SECONDS = 0.3  # for counting the lines of all of them; the differences are loaded when opened


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A submission with its newest evaluation on the device that is chosen.

    `number` counts from 1, the oldest. `change`: from the one before in the same language.
    """

    number: int
    submission: Submission
    evaluation: Evaluation
    change: TextDiff | None
    may_rank: bool

    @property
    def score(self) -> float | None:
        """What boards show of a ranked one, and the speedup of any other."""
        return self.evaluation.score or self.evaluation.speedup_best


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """The newest attempts, newest first; `speedups` are theirs in the order of time."""

    rows: Sequence[Attempt] = ()

    @property
    def speedups(self) -> list[float | None]:
        """For a picture; empty where it would show next to nothing."""
        known = [each.score for each in reversed(self.rows) if each.score]
        return [*known] if len(known) > _FEWEST else []


def attempts(
    version: TaskVersion | None, direction: str, device: Device | None, user: Viewer
) -> Attempts:
    """Those of `user` and their agents. A run's page shows its candidates."""
    if version is None or device is None or user.pk is None:
        return Attempts()
    entered = (
        Submission.objects.filter(author_id=user.pk, task_version=version, direction=direction)
        .filter(evaluations__device=device)
        .exclude(origin=Submission.Origin.RUN)
        .distinct()
    )
    newest = list(entered.select_related("agent").order_by("-created_at", "pk")[: _SHOWN + 1])
    evaluations = _evaluations(newest, device, user)
    rows = _rows(newest, entered.count(), evaluations, is_current=_is_current(version))
    return Attempts(rows=tuple(rows)[:_SHOWN])


def _evaluations(
    submissions: Sequence[Submission], device: Device, user: Viewer
) -> dict[UUID, list[Evaluation]]:
    """By submission, newest first; nobody asked for audits."""
    rows = visible_evaluations(user).filter(submission__in=submissions, device=device)
    found: dict[UUID, list[Evaluation]] = {each.pk: [] for each in submissions}
    for row in rows.exclude(mode=Mode.AUDIT.value).order_by("-created_at"):
        found[row.submission_id].append(row)
    return found


def _rows(
    submissions: Sequence[Submission],
    count: int,
    evaluations: dict[UUID, list[Evaluation]],
    *,
    is_current: bool,
) -> Iterator[Attempt]:
    budget = Budget(seconds=_SECONDS)
    for place, each in enumerate(submissions):
        known = evaluations[each.pk]
        if not known:
            continue
        before = next(_like(each, submissions[place + 1 :]), None)
        yield Attempt(
            number=count - place,
            submission=each,
            evaluation=known[0],
            change=diff(before.source, each.source, budget) if before else None,
            may_rank=is_current and _may_rank(each, known),
        )


def _like(submission: Submission, earlier: Iterable[Submission]) -> Iterator[Submission]:
    """Those that a difference to says something about, as `selectors.last_before` has it."""
    return (
        other
        for other in earlier
        if (other.language, other.agent_id) == (submission.language, submission.agent_id)
    )


def _may_rank(submission: Submission, known: Sequence[Evaluation]) -> bool:
    """Whether it was right without being ranked, and nothing but its author keeps it from that."""
    if submission.private or submission.budgeted:
        return False
    newest = known[0]
    ranked = any(each.mode == Mode.RANKED and each.status != Status.CANCELLED for each in known)
    return not ranked and newest.verdict == Verdict.CORRECT and newest.status == Status.FINISHED


def _is_current(version: TaskVersion) -> bool:
    return version.task.current_version_id == version.pk
