"""Draws `tasks_app.drawings` as SVG, each with its numbers in words for those who see none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import template

from tasks_app import drawings

register = template.Library()


@register.inclusion_tag("tasks_app/drawings/trend.html")
def trend(
    values: Iterable[float | None], label: str, *, log: bool = False, steps: bool = False
) -> dict[str, Any]:
    """A line through values in order; `label` says in words what it shows. Nothing if empty."""
    return {"trend": drawings.trend(values, log=log, steps=steps), "label": label}


@register.inclusion_tag("tasks_app/drawings/trend.html")
def curve(
    values: Iterable[float | None], label: str, *, log: bool = False, steps: bool = False
) -> dict[str, Any]:
    """As `trend`, as wide as its place, and higher."""
    drawn = drawings.trend(values, log=log, steps=steps, width=640.0, height=120.0)
    return {"trend": drawn, "label": label, "wide": True}


@register.inclusion_tag("tasks_app/drawings/interval.html")
def interval(estimate: Any, axis: drawings.Axis) -> dict[str, Any]:
    """A ratio with `value`, `low` and `high`, or a plain one, on an axis; nothing for None."""
    if estimate in (None, ""):  # what a template does not find is empty
        return {"drawn": None}
    value = getattr(estimate, "value", estimate)
    low, high = getattr(estimate, "low", None), getattr(estimate, "high", None)
    drawn = drawings.interval(value, low, high, axis)
    return {"drawn": drawn, "value": value, "low": low, "high": high}


@register.inclusion_tag("tasks_app/drawings/ticks.html")
def axis_ticks(axis: drawings.Axis) -> dict[str, Any]:
    """The words of an axis, to be put above or below the rows that share it."""
    return {"axis": axis}


@register.inclusion_tag("tasks_app/drawings/bar.html")
def bar(parts: list[drawings.Part], label: str) -> dict[str, Any]:
    """A stacked bar of `drawings.stack`; `label` says in words what it shows."""
    return {"parts": parts, "label": label}


@register.inclusion_tag("tasks_app/drawings/bar.html")
def share_bar(share: float | None, label: str, kind: str = "done") -> dict[str, Any]:
    """A bar that one share of 1 fills; empty for None."""
    counts: Mapping[tuple[str, str], float] = {(kind, label): min(max(share or 0.0, 0.0), 1.0)}
    return {"parts": drawings.stack(counts, whole=1.0), "label": label}
