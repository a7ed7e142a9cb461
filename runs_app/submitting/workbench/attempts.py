"""What somebody has tried at a task so far: each attempt, and what it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.work.access import asked_for, standing_of, visible_evaluations
from runs_app.core.work.result_state import baseline_noun, compared_with, is_sure
from runs_app.models import Device, Evaluation, Quarantine, Status, Submission
from tasks_app.models import TaskVersion
from tasks_app.pages.text_diff import Budget, TextDiff, diff
from tasks_app.people import Viewer

_SHOWN = 20
_FEWEST = 2  # speedups, of which a table says as much as a picture
_SECONDS = 0.3  # for counting the lines of all of them; the differences are loaded when opened


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A submission with the evaluation that stands for it on the device that is chosen.

    `number` counts from 1, the oldest. `change`: from the one before in the same language.
    `others`: its newest correct evaluation in each other mode. `under_way`: the newest one, if
    that is another and isn't over. `may_repeat`: nothing but its author keeps it from being
    measured again for all to see; `may_rank`: it was right, and isn't ranked.
    """

    number: int
    submission: Submission
    evaluation: Evaluation
    change: TextDiff | None
    may_repeat: bool
    may_rank: bool
    others: Sequence[Evaluation] = ()
    under_way: Evaluation | None = None

    @property
    def score(self) -> float | None:
        """What boards show of a ranked one, and the speedup of any other."""
        return self.evaluation.score or self.evaluation.speedup_best

    @property
    def spread(self) -> float | None:
        """Half the interval of `score`, as the attempt's own page has it."""
        return self.evaluation.rated_spread

    @property
    def over(self) -> str:
        """What `score` is compared with, as a noun."""
        return baseline_noun(compared_with(self.evaluation))

    @property
    def is_sure(self) -> bool:
        """Whether it may have a color."""
        return is_sure(self.evaluation)


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
        .filter(evaluations__device=device, run=None)
        .distinct()
    )
    newest = list(entered.select_related("agent").order_by("-created_at", "pk")[: _SHOWN + 1])
    evaluations = _evaluations(newest, device, user)
    is_current = version.task.current_version_id == version.pk
    rows = _rows(newest, entered.count(), evaluations, is_current=is_current)
    return Attempts(rows=tuple(rows)[:_SHOWN])


def _evaluations(
    submissions: Sequence[Submission], device: Device, user: Viewer
) -> dict[UUID, list[Evaluation]]:
    """By submission, newest first; nobody asked for audits."""
    rows = visible_evaluations(user).filter(submission__in=submissions, device=device)
    found: dict[UUID, list[Evaluation]] = {each.pk: [] for each in submissions}
    for row in asked_for(rows):
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
    ranked = {each.digest for each in submissions if _is_ranked(evaluations[each.pk])}
    for place, each in enumerate(submissions):
        known = evaluations[each.pk]
        shown = standing_of(known)
        if shown is None:
            continue
        may_repeat = is_current and not (each.private or each.budgeted)
        before = next(_like(each, submissions[place + 1 :]), None)
        yield Attempt(
            number=count - place,
            submission=each,
            evaluation=shown,
            change=diff(before.solution.whole, each.solution.whole, budget) if before else None,
            may_repeat=may_repeat,
            may_rank=may_repeat and each.digest not in ranked and _is_right(shown),
            others=_others(known, shown),
            under_way=None if known[0].is_over or known[0] == shown else known[0],
        )


def _like(submission: Submission, earlier: Iterable[Submission]) -> Iterator[Submission]:
    """Those that a difference to says something about, as `selectors.differences` has it."""
    return (
        other
        for other in earlier
        if (other.language, other.agent_id) == (submission.language, submission.agent_id)
    )


def _others(known: Sequence[Evaluation], shown: Evaluation) -> list[Evaluation]:
    timed = [each for each in known if each.latency_ns and each.mode != shown.mode]
    return list({each.mode: each for each in reversed(timed)}.values())


def _is_ranked(known: Sequence[Evaluation]) -> bool:
    return any(each.mode == Mode.RANKED and each.status != Status.CANCELLED for each in known)


def _is_right(shown: Evaluation) -> bool:
    doubted = shown.quarantine in (Quarantine.OPEN, Quarantine.REJECTED)
    return shown.verdict == Verdict.CORRECT and not doubted
