"""How far a re-evaluation has come, and each score before beside the one now."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.features.reevaluation.selectors import Key, key_of, with_names
from runs_app.models import UNDER_WAY, Evaluation, Status
from tasks_app.drawings import NOISE
from tasks_app.numbers import signed


@dataclass(frozen=True, kw_only=True)
class Row:
    """An evaluation, and the one of the same source before; None if there was none."""

    now: Evaluation
    before: Evaluation | None

    @property
    def change(self) -> float | None:
        """Relative change of what each evaluation alone would score: 0.1 is 10 % more.

        Without both scores, it is that of the speedup on listed sizes.
        """
        if self.before is None:
            return None
        then, now = self.before.own_score, self.now.own_score
        if not then or not now:
            then, now = self.before.speedup_best, self.now.speedup_best
        return now / then - 1 if then and now else None

    @property
    def change_words(self) -> str:
        """The change with its sign, in words that need no colour; empty where there is none."""
        if self.change is None:
            return ""
        # Wider intervals also hold how far apart the two are, so they can't tell.
        spreads = [each.speedup_spread or 0.0 for each in (self.now, self.before) if each]
        if abs(self.change) < max(NOISE, math.hypot(*spreads)):
            return "about the same"
        return f"{'▲' if self.change > 0 else '▼'} {signed(self.change * 100)}"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A re-evaluation as it stands; its rows are in the order in which they were queued."""

    rows: tuple[Row, ...]

    @property
    def total(self) -> int:
        """All its evaluations."""
        return len(self.rows)

    @property
    def ended(self) -> int:
        """Those with a verdict."""
        return sum(count for _, count in self.verdicts)

    @property
    def counts(self) -> Counter[str]:
        """How many have each status."""
        return Counter(row.now.status for row in self.rows)

    @property
    def verdicts(self) -> list[tuple[str, int]]:
        """How many ended with which verdict, the most frequent first."""
        return Counter(row.now.verdict for row in self.rows if row.now.verdict).most_common()

    @property
    def under_way(self) -> bool:
        """Whether something of it waits or runs."""
        return any(row.now.status in UNDER_WAY for row in self.rows)


def progress_of(reevaluation: Reevaluation) -> Progress:
    """How far it has come."""
    before = _before(reevaluation)
    own = with_names(reevaluation.evaluations.all()).order_by("created_at")
    places = ((row, (key_of(row.submission), row.device_id)) for row in own)
    return Progress(rows=tuple(Row(now=row, before=before.get(place)) for row, place in places))


def _before(reevaluation: Reevaluation) -> dict[tuple[Key, str], Evaluation]:
    """The latest ranked result of each entry and device of the source, as it was then."""
    rows = Evaluation.objects.filter(
        task_version=reevaluation.source,
        mode=Mode.RANKED.value,
        status=Status.FINISHED,
        finished_at__lte=reevaluation.created_at,
        device__in=reevaluation.devices,
        submission__run__isnull=True,
        submission__digest__in=reevaluation.evaluations.values("submission__digest"),
    ).exclude(verdict=Verdict.SYSTEM_ERROR.value)
    ordered = with_names(rows).order_by("created_at", "pk")
    return {(key_of(row.submission), row.device_id): row for row in ordered}
