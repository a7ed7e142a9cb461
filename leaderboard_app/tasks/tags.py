"""Results on versions of a task, whether or not their boards are still open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import template

from runs_app.integrity.eligibility import eligible_on
from tasks_app.models import TaskVersion
from tasks_app.selectors import task_writers

register = template.Library()

_SHOWN = 10
_SHOWN_WITH = ("submission__agent", "submission__language_model", "submission__author")


@register.simple_tag
def result_counts(versions: Sequence[TaskVersion]) -> dict[int, int]:
    """By id of the version: the correct ranked results of public submissions that stand on it."""
    return {version.pk: eligible_on(version).count() for version in versions}


@register.inclusion_tag("leaderboard_app/tasks/parts/version_results.html")
def fastest_on(version: TaskVersion) -> dict[str, Any]:
    """The fastest of these results on one version, by device and direction."""
    rows = eligible_on(version)
    problems = rows.order_by("device", "direction").values_list("device", "direction").distinct()
    tables = []
    for device, direction in problems:
        found = rows.filter(device=device, direction=direction).order_by("latency_ns", "pk")
        shown = found.select_related("device", *_SHOWN_WITH)
        tables.append((direction, list(shown[:_SHOWN])))
    writers = {name for _, name in task_writers(version.task)}
    return {"tables": tables, "version": version, "writers": writers}
