"""Money, times and states of optimization runs for people to read."""

from __future__ import annotations

from django import template

from tasks_app.numbers import usd

register = template.Library()
register.filter(usd)


@register.filter
def spent(value: float | None, name: str) -> str:
    """What a run spent of a budget's part: money, tokens, evaluations, or seconds."""
    if value is None:
        return "no cap"
    if name == "usd":
        return usd(value)
    return clock(value) if name == "wall_time_s" else f"{value:,.0f}"


@register.filter
def clock(seconds: float | None) -> str:
    """A length of time as 42 s, 12 min 05 s, 3 h 20 min."""
    if seconds is None:
        return "–"
    whole = int(seconds)
    if whole < 100:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
