"""States of filters and of wrong kernels in words and signs."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tasks_app.formats.soundness_report import Filter
from tasks_app.numbers import significant
from tasks_app.templatetags.display import chip, scientific

register = template.Library()

_STATES = {
    "passed": ("good", "✓", "Passed"),
    "flagged": ("bad", "✗", "Flagged"),
    "unknown": ("", "○", "Unknown"),
    "failed": ("good", "✓", "Fails"),
    "survived": ("bad", "✗", "Passes"),
    "equivalent": ("", "=", "Equivalent"),
    "untried": ("", "○", "Not tried"),
    "right": ("good", "✓", "Right"),
    "off": ("warn", "!", "Off"),
}

_BEYOND_SENSE = 1e6  # so far off, how far says nothing more to a reader
_ENDLESS = 1e300  # what the engine writes for a result that is not finite


@register.simple_tag
def soundness_state(state: str) -> SafeString:
    """A badge with the state of a filter, of a wrong kernel, or of an honest one."""
    if not state:
        return SafeString("–")
    kind, sign, words = _STATES.get(state, ("", "○", state))
    return chip(words, kind, sign=sign)


@register.filter
def found_number(value: float | None) -> str:
    """0.0123, 12.3, 1230, 2.4e5; ∞ for what is not finite, a dash for None."""
    if value is None:
        return "–"
    if not abs(value) < _ENDLESS:
        return "∞"
    plain = value == 0 or 1e-3 <= abs(value) < 1e4
    return significant(value) if plain else scientific(value)


@register.filter
def error_number(value: float | None) -> str:
    """An error as a multiple of what is allowed: 0.0123, 12.3, 164,000.

    Beyond a million it says only that, with the number itself behind it as a title.
    """
    if value is None or not 1e4 <= value < _ENDLESS:
        return found_number(value)
    if value > _BEYOND_SENSE:
        return format_html(
            '<span title="{} times what is allowed">&gt; {}</span>',
            scientific(value),
            f"{_BEYOND_SENSE:,.0f}",
        )
    return f"{float(f'{value:.2e}'):,.0f}"


@register.filter
def found_value(found: Filter) -> str:
    """A filter's number; yes or no where an argument matters or does not."""
    if found.value is not None and found.name.startswith("input impact"):
        return "yes" if found.value else "no"
    return found_number(found.value)


@register.filter
def found_limit(found: Filter) -> str:
    """What a filter's value is held against, as `found_value` shows it."""
    return "yes" if found.name.startswith("input impact") else found.limit
