"""Small boards that other pages show."""

from __future__ import annotations

from typing import Any

from django import template

from leaderboard_app.boards import recent, selectors
from leaderboard_app.boards.board import top
from tasks_app import drawings

register = template.Library()

_ROWS = 10


@register.inclusion_tag("leaderboard_app/boards/parts/task_boards.html")
def task_boards(slug: str) -> dict[str, Any]:
    """The first rows of a task's board, one table a device."""
    tables = [
        (device, top(device.slug, task=slug, limit=_ROWS))
        for device in selectors.devices_with_results()
    ]
    return {"tables": [(device, rows) for device, rows in tables if rows], "slug": slug}


@register.simple_tag
def solved_by() -> dict[str, selectors.Solved]:
    """By task: how many agents solved it, and the best speedup with its device."""
    return recent.solved()


@register.simple_tag
def solved_axis(solvers: dict[str, selectors.Solved]) -> drawings.Axis:
    """An axis that holds the best speedups of all tasks."""
    return drawings.axis(solved.speedup for solved in solvers.values())
