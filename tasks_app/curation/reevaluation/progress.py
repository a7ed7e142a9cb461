"""How far a re-evaluation has come, and old places beside new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.integrity.eligibility import eligible_on
from runs_app.models import Evaluation, Status, Submission
from tasks_app.curation.reevaluation.selectors import (
    Board,
    best_of_agents,
    board_of,
    key_of,
    latest_ranked,
    order,
    with_names,
)
from tasks_app.models import AuditEntry, Task, TaskVersion

NOISE = 0.02  # a change below this is none where no interval is looked at


@dataclass(frozen=True, kw_only=True)
class Row:
    """A submission before and now; a place is 1 or more, and None where there is none.

    `now` is the evaluation of the same source on the new version, whatever came of it. The places
    are those of its author and agent, `other` if the new one is held by another source of theirs.
    """

    before: Evaluation | None
    now: Evaluation | None
    place_before: int | None
    place_now: int | None
    other: bool = False

    @property
    def shown(self) -> Evaluation:
        """The evaluation that names author and agent."""
        found = self.now or self.before
        assert found is not None, "a row is made of one of them"
        return found

    @property
    def speedup_before(self) -> float | None:
        """Against the best baseline of then."""
        return self.before.speedup_best if self.before else None

    @property
    def speedup_now(self) -> float | None:
        """Against the best baseline of now."""
        return self.now.speedup_best if self.now else None

    @property
    def change(self) -> float | None:
        """Relative change of the speedup: 0.1 is 10 % more."""
        before, now = self.speedup_before, self.speedup_now
        return now / before - 1 if now and before else None

    @property
    def change_words(self) -> str:
        """The change with its sign, in words that need no colour; empty where there is none."""
        if self.change is None:
            return ""
        if abs(self.change) < NOISE:
            return "about the same"
        sign = "▲ +" if self.change > 0 else "▼ −"
        return f"{sign}{abs(self.change) * 100:.1f} %"

    @property
    def moved(self) -> str:
        """How its place changed, in words; empty where it has none on one side."""
        if self.place_before is None or self.place_now is None:
            return ""
        steps = self.place_before - self.place_now
        return f"{abs(steps)} {'up' if steps > 0 else 'down'}" if steps else "same place"


@dataclass(frozen=True, kw_only=True)
class BoardProgress:
    """One device and direction: places before and now, and what else was tried.

    `more` counts the rows that are left out.
    """

    board: Board
    device: str
    rows: tuple[Row, ...]
    others: tuple[Row, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A re-evaluation as it stands; `verdicts` counts what has ended, the most frequent first."""

    act: AuditEntry
    source: TaskVersion
    target: TaskVersion
    waiting: int
    running: int
    cancelled: int
    verdicts: tuple[tuple[str, int], ...]
    boards: tuple[BoardProgress, ...]

    @property
    def more(self) -> int:
        """Rows that are left out of the tables."""
        return sum(board.more for board in self.boards)

    @property
    def total(self) -> int:
        """All its evaluations."""
        return self.waiting + self.running + self.cancelled + self.ended

    @property
    def ended(self) -> int:
        """Those with a verdict."""
        return sum(count for _, count in self.verdicts)

    @property
    def under_way(self) -> bool:
        """Whether something of it waits or runs."""
        return bool(self.waiting or self.running)


def acts_of(task: Task) -> QuerySet[AuditEntry]:
    """The task's re-evaluations, the newest first."""
    acts = AuditEntry.objects.filter(
        task=task,
        kind=AuditEntry.Kind.REEVALUATED,
        version__isnull=False,
        details__has_key="evaluations",
    )
    return acts.select_related("version__task", "actor")


def progress_of(act: AuditEntry, most: int | None = None) -> Progress:
    """How far it has come; `act` is one of `acts_of`, and a table has at most `most` rows."""
    assert act.version is not None, "acts_of leaves out those without"
    target = act.version
    source = TaskVersion.objects.get(task=target.task_id, number=act.details["from"])
    own = list(with_names(act.evaluations.all()).order_by("created_at"))
    states = Counter(row.status for row in own)
    verdicts = Counter(row.verdict for row in own if row.verdict)
    return Progress(
        act=act,
        source=source,
        target=target,
        waiting=states[Status.QUEUED],
        running=states[Status.RUNNING],
        cancelled=states[Status.CANCELLED],
        verdicts=tuple(verdicts.most_common()),
        boards=tuple(_Comparison(act, source, target, own).boards(most)),
    )


class _Comparison:
    """Both sides of a re-evaluation."""

    def __init__(
        self, act: AuditEntry, source: TaskVersion, target: TaskVersion, own: list[Evaluation]
    ) -> None:
        slugs = act.details["devices"]
        before = eligible_on(source, before=act.created_at).filter(device__in=slugs)
        now = eligible_on(target).filter(device__in=slugs)
        self._own = own
        self._before = best_of_agents(with_names(before))
        self._now = best_of_agents(with_names(now))
        self._places = _places(self._now)
        self._tried = _newest(self._on(target, slugs, act, same=source.pk == target.pk))
        earlier = latest_ranked(source, slugs, before=act.created_at).values()
        self._earlier = {(key_of(row.submission), board_of(row)): row for row in earlier}

    def boards(self, most: int | None) -> Iterable[BoardProgress]:
        """Each device and direction that has rows, in order."""
        found = {board_of(row) for row in self._own} | set(self._before)
        names = {row.device_id: row.device.name for row in self._own}
        for held in self._before.values():
            names |= {row.device_id: row.device.name for row in held}
        for board in sorted(found):
            rows = self._rows(board)
            shown = {row.now.pk for row in rows if row.now}
            others = [
                self._row(board, self._earlier.get((key_of(row.submission), board)), row, None)
                for row in self._own
                if board_of(row) == board and row.pk not in shown
            ]
            others.sort(key=lambda row: order(row.shown))
            kept, kept_others = tuple(rows[:most]), tuple(others[:most])
            yield BoardProgress(
                board=board,
                device=names[board.device],
                rows=kept,
                others=kept_others,
                more=len(rows) + len(others) - len(kept) - len(kept_others),
            )

    def _rows(self, board: Board) -> list[Row]:
        """A row for each place before."""
        return [
            self._row(
                board,
                row,
                self._tried.get((key_of(row.submission), board)),
                place if row.speedup_best else None,
            )
            for place, row in enumerate(self._before.get(board, ()), start=1)
        ]

    def _row(
        self, board: Board, before: Evaluation | None, now: Evaluation | None, place: int | None
    ) -> Row:
        shown = now or before
        assert shown is not None, "a row is made of one of them"
        owner = (shown.submission.author_id, shown.submission.agent_id)
        held = self._places.get((board, *owner))
        place_now, holder = held or (None, None)
        same = holder is not None and holder == (now.submission_id if now else None)
        return Row(
            before=before,
            now=now,
            place_before=place,
            place_now=place_now,
            other=holder is not None and not same,
        )

    def _on(
        self, target: TaskVersion, slugs: list[str], act: AuditEntry, *, same: bool
    ) -> QuerySet[Evaluation]:
        """Ranked evaluations on the target; of the same version only those made since."""
        rows = Evaluation.objects.filter(
            task_version=target, mode=Mode.RANKED.value, device__in=slugs
        ).exclude(submission__origin=Submission.Origin.RUN)
        rows = rows.filter(created_at__gte=act.created_at) if same else rows
        return with_names(rows).order_by("created_at", "pk")


def _newest(rows: Iterable[Evaluation]) -> dict[tuple[object, Board], Evaluation]:
    """The newest of each entry and board; what was cancelled or lost replaces nothing."""
    found: dict[tuple[object, Board], Evaluation] = {}
    for row in rows:
        place = (key_of(row.submission), board_of(row))
        idle = row.status == Status.CANCELLED or row.verdict == Verdict.SYSTEM_ERROR
        if place not in found or not idle:
            found[place] = row
    return found


def _places(
    boards: Mapping[Board, tuple[Evaluation, ...]],
) -> dict[tuple[Board, int, int], tuple[int | None, UUID]]:
    """Place of each author and agent, and the submission that holds it."""
    return {
        (board, row.submission.author_id, row.submission.agent_id): (
            place if row.speedup_best else None, row.submission_id
        )
        for board, rows in boards.items()
        for place, row in enumerate(rows, start=1)
    }  # fmt: skip
