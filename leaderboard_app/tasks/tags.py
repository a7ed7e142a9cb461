"""Results on versions of a task, whether or not their boards are still open."""

from __future__ import annotations

from collections.abc import Sequence

from django import template

from leaderboard_app.boards.best import entries_of
from leaderboard_app.boards.tables import OF_VERSION
from runs_app.core.integrity.eligibility import eligible_on
from runs_app.models import Device
from tasks_app.models import TaskVersion

register = template.Library()

_SHOWN = 10


@register.simple_tag
def result_counts(versions: Sequence[TaskVersion]) -> dict[int, int]:
    """By id of the version: the correct ranked results of public submissions that stand on it."""
    return {version.pk: eligible_on(version).count() for version in versions}


@register.inclusion_tag("leaderboard_app/tasks/parts/version_results.html")
def fastest_on(version: TaskVersion) -> dict[str, object]:
    """The best of these results on one version, by device and direction."""
    rows = eligible_on(version)
    problems = rows.order_by("device", "direction").values_list("device", "direction").distinct()
    tables = []
    for device, direction in problems:
        found = rows.filter(device=device, direction=direction).order_by(
            "-merit", "submission__created_at", "pk"
        )
        entries = entries_of(found[:_SHOWN])
        tables.append((Device.objects.get(slug=device), direction, entries))
    return {"tables": tables, "version": version, "columns": OF_VERSION}
