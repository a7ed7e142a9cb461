"""Draws `tasks_app.drawings` as SVG, each with its numbers in words for those who see none.

What stands in each row of a table is written here: templates for it took 40 % of a page's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tasks_app import drawings
from tasks_app.numbers import between, times

register = template.Library()

_TREND = (
    '<svg class="trend" viewBox="0 0 {} {}" role="img" aria-label="{}">{}'
    '<circle cx="{}" cy="{}" r="2.5"/></svg>'
)
_CURVE = (
    '<svg class="trend wide" viewBox="0 0 {} {}" role="img" aria-label="{}"'
    ' preserveAspectRatio="none">{}<path class="end" d="M{} {}h0"/></svg>'
)
_LINE = '<path class="area" d="{}"/><path class="line" d="{}"/>'
_INTERVAL = (
    '<svg class="interval {kind}" viewBox="0 0 {width} 16" role="img" aria-label="{label}">'
    '<path class="axis" d="M0 8H{width}"/><path class="one" d="M{one} 0V16"/>'
    '<path class="reach" d="M{one} 8H{value}"/>'
    '<rect class="range" x="{start}" y="4" width="{length}" height="8" rx="2"/>'
    '<circle cx="{value}" cy="8" r="3.5"/></svg>'
)


@register.simple_tag
def trend(
    values: Iterable[float | None], label: str, *, log: bool = False, steps: bool = False
) -> SafeString:
    """A line through values in order; `label` says in words what it shows. Nothing if empty."""
    return _line(_TREND, drawings.trend(values, log=log, steps=steps), label)


@register.simple_tag
def curve(
    values: Iterable[float | None], label: str, *, log: bool = False, steps: bool = False
) -> SafeString:
    """As `trend`, as wide as its place, and higher."""
    drawn = drawings.trend(values, log=log, steps=steps, width=640.0, height=120.0)
    return _line(_CURVE, drawn, label)


def _line(picture: str, drawn: drawings.Trend | None, label: str) -> SafeString:
    if drawn is None:
        return SafeString("")
    path = format_html(_LINE, drawn.area, drawn.path) if drawn.path else ""
    size, end = (drawn.width, drawn.height), (drawn.x, drawn.y)
    return format_html(picture, *map(_number, size), label, path, *map(_number, end))


@register.simple_tag
def interval(estimate: Any, axis: drawings.Axis, *, sure: bool = True) -> SafeString:
    """A ratio with `value`, `low` and `high`, or a plain one, on an axis; nothing for None.

    One that is not `sure` is not colored.
    """
    if estimate in (None, ""):  # what a template does not find is empty
        return SafeString("")
    value = getattr(estimate, "value", estimate)
    low, high = getattr(estimate, "low", None), getattr(estimate, "high", None)
    drawn = drawings.interval(value, low, high, axis)
    known = f", {between(low, high)}" if low and high else ""
    names = ("width", "one", "value", "start", "length")
    places = {name: _number(getattr(drawn, name)) for name in names}
    return format_html(
        _INTERVAL,
        kind=drawn.kind if sure else "neutral",
        label=f"{times(value)}{known}",
        **places,
    )


def _number(value: float) -> str:
    """A length in the picture, to a hundredth of its unit."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


@register.inclusion_tag("tasks_app/drawings/ticks.html")
def axis_ticks(axis: drawings.Axis) -> dict[str, object]:
    """The words of an axis, to be put above or below the rows that share it."""
    return {"ticks": axis.ticks()}


@register.inclusion_tag("tasks_app/drawings/bar.html")
def bar(parts: list[drawings.Part], label: str) -> dict[str, object]:
    """A stacked bar of `drawings.stack`; `label` says in words what it shows."""
    return {"parts": parts, "label": label}


@register.inclusion_tag("tasks_app/drawings/bar.html")
def share_bar(share: float | None, label: str, kind: str = "done") -> dict[str, object]:
    """A bar that one share of 1 fills; empty for None."""
    counts: Mapping[tuple[str, str], float] = {(kind, label): min(max(share or 0.0, 0.0), 1.0)}
    return {"parts": drawings.stack(counts, whole=1.0), "label": label}
