"""What somebody has achieved on a device: asked of the database, as everybody may see it.

All but the runs is public: it counts what stands on boards, and the tries behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from gpu_runner.data.verdict import Verdict
from leaderboard_app.boards.best import best_of
from leaderboard_app.boards.ranking import Entry, Problem
from leaderboard_app.boards.records import best_evaluations
from runs_app.core.integrity.eligibility import (
    eligible_evaluations,
    held_evaluations,
    judged_evaluations,
    without_replaced,
)
from runs_app.core.work.access import visible_submissions
from runs_app.core.work.result_state import SURE, SURE_LEAD
from runs_app.models import Agent, Device, Evaluation, LanguageModel, Run
from runs_app.optimiser.selectors.runs import has_entry, in_words, visible_runs
from runs_app.optimiser.selectors.spending import known_sum
from tasks_app.people import Viewer


@dataclass(frozen=True)
class Owner:
    """An agent, which may be a person, or a language model."""

    row: Agent | LanguageModel

    @property
    def column(self) -> str:
        """The column of an evaluation that names it."""
        return f"submission__{'agent' if isinstance(self.row, Agent) else 'language_model'}"

    @property
    def partner(self) -> str:
        """The column of those with whom it worked."""
        return f"submission__{'language_model' if isinstance(self.row, Agent) else 'agent'}"

    def among(self, rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
        """Its own of these evaluations."""
        return rows.filter(**{self.column: self.row}).order_by()


@dataclass(frozen=True)
class Tries:
    """Ranked evaluations of one problem that were judged."""

    problem: Problem
    judged: int
    accepted: int


@dataclass(frozen=True)
class Partner:
    """Somebody with whom an owner's kernels were written."""

    row: Agent | LanguageModel
    solved: int
    """Task versions that they solved together."""


@dataclass(frozen=True)
class Spend:
    """What runs have spent; `words` say how many they were."""

    words: str
    runs: int
    usd: float | None
    tokens: int
    evaluations: int


def devices_of(owner: Owner) -> list[Device]:
    """Devices on which it was judged, or is held, the one with most results first."""
    counts: Counter[str] = Counter()
    for rows in (without_replaced(judged_evaluations()), held_evaluations()):
        counted = owner.among(rows).values_list("device_id").annotate(count=Count("pk"))
        counts.update(dict(counted))
    found = Device.objects.filter(pk__in=counts)
    return sorted(found, key=lambda device: (-counts[device.slug], device.slug))


def entries_of(owner: Owner, device: Device) -> list[Entry]:
    """Its fastest result of each problem on the device."""
    return best_of(_on(device, owner.among(eligible_evaluations())), (owner.column,))


def tries_of(owner: Owner, device: Device) -> list[Tries]:
    """Each problem that it tried on the device; a submission counts as it was measured last."""
    rows = _on(device, owner.among(without_replaced(judged_evaluations())))
    keys = ("task_version__task__slug", "direction")
    good = Count("pk", filter=Q(verdict=Verdict.CORRECT.value))
    counted = rows.values(*keys).annotate(judged=Count("pk"), accepted=good)
    return [
        Tries(Problem(task, direction), judged, accepted)
        for task, direction, judged, accepted in counted.values_list(*keys, "judged", "accepted")
    ]


def held_of(owner: Owner, device: Device) -> dict[Problem, int]:
    """By problem: how many correct results wait until a person decides about them."""
    rows = _on(device, owner.among(held_evaluations()))
    keys = ("task_version__task__slug", "direction")
    counted = rows.values(*keys).annotate(count=Count("pk")).values_list(*keys, "count")
    return {Problem(task, direction): count for task, direction, count in counted}


def days_of(owner: Owner, device: Device) -> list[tuple[date, Problem, float]]:
    """The best score of each day and problem among sure results that stand today, by day."""
    standing = _on(device, owner.among(eligible_evaluations()))
    rows = standing.filter(SURE, score__isnull=False)
    keys = ("day", "task_version__task__slug", "direction")
    best = rows.annotate(day=TruncDate("finished_at")).values(*keys).annotate(best=Max("score"))
    found = best.order_by("day").values_list(*keys, "best")
    return [(day, Problem(task, direction), value) for day, task, direction, value in found]


def boards_led(owner: Owner, device: Device) -> int:
    """Boards of one task on the device that it surely leads, without those of marked tasks."""
    return _on(device, owner.among(best_evaluations().filter(SURE_LEAD))).count()


def solved_with(owner: Owner) -> dict[int, int]:
    """By language model of an agent, or agent of a language model: what they solved together."""
    rows = owner.among(eligible_evaluations()).exclude(**{owner.partner: None})
    solved = rows.values_list(owner.partner).annotate(count=Count("task_version", distinct=True))
    return dict(solved.values_list(owner.partner, "count"))


def partners_of(owner: Owner, solved: Mapping[int, int]) -> list[Partner]:
    """Those of `solved_with`, who solved most first."""
    kind = LanguageModel if isinstance(owner.row, Agent) else Agent
    found: Iterable[Agent | LanguageModel] = kind.objects.filter(pk__in=solved)
    partners = [Partner(row, solved[row.pk]) for row in found]
    return sorted(partners, key=lambda partner: (-partner.solved, partner.row.name))


def agents_of(agent: Agent, viewer: Viewer) -> list[Agent]:
    """Agents of a person that have entered something that the viewer may see."""
    if agent.user_id is None:
        return []
    entered = visible_submissions(viewer).filter(agent=OuterRef("pk")).order_by()
    return list(Agent.objects.filter(Exists(entered), owner=agent.user_id).order_by("name"))


def runs_of(owner: Owner, viewer: Viewer) -> QuerySet[Run]:
    """Runs of an agent, or that asked a language model, as far as the viewer may see them."""
    if isinstance(owner.row, LanguageModel):
        return visible_runs(viewer).filter(Exists(owner.row.calls.filter(run=OuterRef("pk"))))
    if owner.row.user_id is not None:
        return visible_runs(viewer).filter(user=owner.row.user_id)
    return visible_runs(viewer).filter(agent=owner.row)


def spend_of(runs: QuerySet[Run]) -> Spend:
    """What these runs have spent together."""
    sums = runs.order_by().aggregate(
        count=Count("pk"),
        tasks=Count("task_version__task", distinct=True),
        submitted=Count("pk", filter=has_entry("pk")),
        usd=known_sum("usd"),
        tokens=Sum("tokens", default=0),
        evaluations=Sum("evaluations", default=0),
    )
    words = in_words(sums["count"], sums["tasks"], sums["submitted"])
    return Spend(words, sums["count"], sums["usd"], sums["tokens"], sums["evaluations"])


def _on(device: Device, rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    return rows.filter(device=device)
