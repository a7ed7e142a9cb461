"""The evaluations that a board is about: those that stand on it, and all that were judged."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta

from django.db.models import Count, OuterRef, Q, QuerySet

from gpu_runner.data.verdict import Verdict
from leaderboard_app.boards.groups import Tally
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.ranking import Author, Problem
from leaderboard_app.boards.selectors import BoardTask
from runs_app.core.integrity.eligibility import (
    eligible_evaluations,
    eligible_on,
    judged_evaluations,
    without_replaced,
)
from runs_app.core.integrity.facts import with_fact
from runs_app.models import Audited, Evaluation
from tasks_app.models import TaskVersion

_AGENT = ("submission__agent__name", "submission__agent__kind", "submission__agent_id")
_MODEL = ("submission__language_model__name",)


def chosen_tasks(query: Query, tasks: Iterable[BoardTask]) -> list[BoardTask]:
    """The tasks of the selection, contaminated ones too."""
    return [
        task
        for task in tasks
        if query.task in ("", task.slug)
        and query.scenario in ("", task.scenario)
        and query.dtype in ("", task.dtype)
        and (not query.direction or query.direction in task.directions)
    ]


def problems_of(query: Query, tasks: Iterable[BoardTask]) -> tuple[Problem, ...]:
    """The problems that a board is about, solved or not."""
    return tuple(
        Problem(task.slug, direction)
        for task in chosen_tasks(query, tasks)
        if query.counts_all or not task.contaminated
        for direction in task.directions
        if query.direction in ("", direction)
    )


def eligible(query: Query) -> QuerySet[Evaluation]:
    """What stands on the board."""
    return _passed(query, matching(query, eligible_evaluations()))


def judged(query: Query) -> QuerySet[Evaluation]:
    """All that was judged, right or wrong: of each submission what was measured last."""
    return matching(query, without_replaced(judged_evaluations()))


def standing_on(query: Query, version: TaskVersion | OuterRef) -> QuerySet[Evaluation]:
    """What stands on the board of a version that is current, and whose task the query names.

    It asks nothing of the task: with its joins PostgreSQL expects one row, and sorts a board.
    """
    return _passed(query, eligible_on(version).filter(**_wanted(query)))


def matching(query: Query, rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Those of these rows that the filters leave."""
    wanted = {
        "task_version__task__slug": query.task,
        "task_version__task__scenario": query.scenario,
        "task_version__dtype": query.dtype,
        "direction": query.direction,
    }
    if not query.counts_all:
        rows = rows.filter(task_version__task__contaminated="")
    given = {name: value for name, value in wanted.items() if value}
    return rows.filter(**given, **_wanted(query))


def _wanted(query: Query) -> dict[str, object]:
    """Conditions that say nothing of the problem."""
    wanted: dict[str, object] = {
        "device_id": query.device,
        "submission__agent__kind": query.who,
        "submission__agent__name": query.agent,
        "submission__language_model__name": query.model,
    }
    if query.since:
        wanted["finished_at__gte"] = datetime.combine(query.since, time(), UTC)
    if query.until:
        wanted["finished_at__lt"] = datetime.combine(query.until, time(), UTC) + timedelta(days=1)
    return {name: value for name, value in wanted.items() if value}


def _passed(query: Query, rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    if query.verified:
        rows = rows.filter(audited=Audited.PASSED)
    rows = with_fact(rows, **query.facts)
    return rows.filter(guest=False) if query.trusted else rows


def tallies(rows: QuerySet[Evaluation], by: By) -> list[Tally]:
    """By name and problem: how many were judged, and how many of these were right.

    Names are language models where the board is by these, else agents.
    """
    names = _MODEL if by is By.MODEL else _AGENT
    keys = (*names, "task_version__task__slug", "direction")
    counted = (
        rows.order_by()
        .values(*keys)
        .annotate(judged=Count("pk"), accepted=Count("pk", filter=Q(verdict=Verdict.CORRECT.value)))
        .values_list(*keys, "judged", "accepted")
    )
    return [
        Tally(
            author=Author("", "", name[0] or "")
            if by is By.MODEL
            else Author("", name[0], "", *name[1:]),
            problem=Problem(task, direction),
            judged=count,
            accepted=accepted,
        )
        for *name, task, direction, count, accepted in counted
    ]
