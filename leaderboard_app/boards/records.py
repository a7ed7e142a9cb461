"""For the first page: who leads boards of one task, and the record of the day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Case, F, OuterRef, QuerySet, Subquery, When

from leaderboard_app.boards import selectors
from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.leading import heads
from leaderboard_app.boards.query import Query
from leaderboard_app.boards.ranking import Entry
from runs_app.core.integrity.eligibility import BOARD_ORDER, eligible_evaluations
from runs_app.core.work.result_state import SURE
from runs_app.models import Device, Evaluation

_SHOWN = 6
"""Leaders that are shown of each device."""


def leading() -> list[UUID]:
    """Keys of the evaluations that lead a board of one task, on all devices."""
    tasks, keys = selectors.board_tasks(), []
    for device in selectors.devices_with_results():
        query = Query(device=device.slug)
        keys += [head.leads for head in heads(query, selectors.problems_of(query, tasks))]
    return keys


def leaders(keys: Collection[UUID]) -> list[tuple[Device, list[Entry]]]:
    """By device: the leaders of those boards of one task on which they are furthest ahead.

    Devices are sorted by how many leaders aren't provisional, then by how many leaders they have;
    of equals, this site's come first. A device's leaders are those with the largest scores: first
    those of which everything is in and that beat their baseline, and of either kind first those
    that have a score.
    """
    rows = Evaluation.objects.filter(pk__in=keys, speedup_best__isnull=False)
    is_ahead = Case(When(SURE, speedup_best__gt=1, then=0), default=1)
    rows = rows.annotate(is_sure=Case(When(SURE, then=1), default=0))
    ordered = rows.order_by(is_ahead, F("score").desc(nulls_last=True), "-speedup_best", "pk")
    shown: dict[str, list[UUID]] = {}
    sure: Counter[str] = Counter()
    for key, slug, is_sure in ordered.values_list("pk", "device_id", "is_sure"):
        shown.setdefault(slug, []).append(key)
        sure[slug] += is_sure
    first = [key for found in shown.values() for key in found[:_SHOWN]]
    known = {each.evaluation_id: each for each in entries_of(rows.filter(pk__in=first))}
    devices = [each for each in selectors.devices_with_results() if each.slug in shown]
    devices.sort(
        key=lambda each: (-sure[each.slug], -len(shown[each.slug]), each.imported_from != "")
    )
    return [
        (device, [known[str(key)] for key in shown[device.slug][:_SHOWN] if str(key) in known])
        for device in devices
    ]


DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A kernel that took the lead of a board."""

    evaluation: Evaluation
    """With its task, agent, language model and device."""
    of_today: bool
    """Whether it came within the last day; else no record fell since, and this is the latest."""
    gain: float | None
    """How many times as good it is as what led before; None for the first on its board."""


def record_of_the_day(now: datetime, keys: Collection[UUID]) -> Record | None:
    """Of those that lead, the last day's with the largest score; else the latest.

    `keys` are those of all evaluations that lead a board of one task.
    """
    leaders = _shown(Evaluation.objects.filter(pk__in=keys)).filter(
        SURE, score__isnull=False, task_version__task__contaminated="", device__imported_from=""
    )
    newest = leaders.filter(finished_at__gt=now - DAY)
    today = newest.order_by("-score", "pk").first()
    found = today or leaders.order_by("-finished_at").first()
    if found is None:
        return None
    before = _rivals(found).filter(finished_at__lt=found.finished_at)
    led = before.order_by("-merit").values_list("merit", flat=True).first()
    gain = found.merit / led if found.merit and led and led > 0 else None
    return Record(evaluation=found, of_today=today is not None, gain=gain)


def furthest_ahead(keys: Collection[UUID]) -> Evaluation | None:
    """Of those that lead, on any device: the best of what isn't provisional, else of all."""
    rows = _shown(Evaluation.objects.filter(pk__in=keys, speedup_best__isnull=False))
    best = (Case(When(SURE, then=0), default=1), F("score").desc(nulls_last=True), "-speedup_best")
    return rows.order_by(*best, "pk").first()


def best_evaluations() -> QuerySet[Evaluation]:
    """The best of each board of one task, wherever it was measured.

    Each row is compared with its board: ask for few, such as those of an author or of a day.
    """
    board = {name: OuterRef(name) for name in ("task_version", "direction", "device")}
    best = eligible_evaluations().filter(**board).order_by(*BOARD_ORDER)
    return eligible_evaluations().filter(pk=Subquery(best.values("pk")[:1]))


def _shown(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """With what is said of a record."""
    return rows.select_related(
        "device", "submission__agent", "submission__language_model", "task_version__task"
    )


def _rivals(evaluation: Evaluation) -> QuerySet[Evaluation]:
    return eligible_evaluations().filter(
        task_version=evaluation.task_version_id,
        direction=evaluation.direction,
        device=evaluation.device_id,
    )
