"""Money, times and states of optimization runs for people to read."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gpu_runner.data.verdict import Mode
from runs_app.models import Evaluation
from tasks_app.numbers import usd
from tasks_app.templatetags.display import seconds

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


UNRANKED = "listed sizes only, not ranked"


@register.simple_tag
def unranked(evaluation: Evaluation) -> SafeString:
    """Below the speedup of a run's best: that it isn't a score yet; empty if it was ranked."""
    if evaluation.mode == Mode.RANKED:
        return SafeString("")
    return format_html('<span class="sub">{}</span>', UNRANKED)


@register.filter
def clock(value: float | None) -> str:
    """A length of time as `seconds` has it, in whole ones: 42 s."""
    return f"{int(value)} s" if value is not None and value < 100 else seconds(value)
