"""Numbers with units, times and navigation for people to read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.template.context import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gpu_runner.data.evaluation import Measurement
from tasks_app.drawings import NOISE
from tasks_app.numbers import (
    between,
    duration_parts,
    duration_text,
    ends,
    percent,
    plus_minus,
    scaled,
    significant,
    times,
    usd,
)
from tasks_app.people import shown_name
from tasks_app.templatetags.terms import explained

register = template.Library()
for _each in (shown_name, duration_text, percent, plus_minus, times, usd):
    register.filter(_each)

_BINARY = ((1, "B"), (1024, "KiB"), (1024**2, "MiB"), (1024**3, "GiB"))
_DECIMAL = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"))
_PERIODS = ((172_800, 86_400, "days"), (7200, 3600, "h"), (120, 60, "min"), (0, 1, "s"))
"""From this many seconds on, this many seconds make one of this unit."""


@register.filter
def breakable(name: str) -> SafeString:
    """A name in which a line may break after an underscore."""
    *heads, tail = name.split("_")
    return format_html("{}{}", format_html_join("", "{}_<wbr>", ((head,) for head in heads)), tail)


@register.filter
def duration(nanoseconds: float | None) -> SafeString:
    """Nanoseconds in the unit that fits: 512 ns, 12.3 µs, 4.56 ms; a dash for None."""
    if nanoseconds is None:
        return SafeString("–")
    return format_html('{} <span class="unit">{}</span>', *duration_parts(nanoseconds))


@register.filter
def seconds(value: float | None) -> str:
    """Seconds as 0.42 s, 12.3 s, 3 min 05 s, 3 h 20 min; a dash for None."""
    if value is None:
        return "–"
    if value < 100:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, left = divmod(minutes, 60)
    return f"{minutes} min {rest:02d} s" if hours < 2 else f"{hours} h {left:02d} min"


@register.filter
def size(value: float | None) -> str:
    """Bytes as 512 B, 1.50 MiB; a dash for None."""
    return "–" if value is None else " ".join(scaled(value, _BINARY))


@register.filter
def amount(value: float | None, unit: str = "") -> str:
    """A large number with a decimal prefix, such as 1.23 GFLOP; a dash for None."""
    if value is None:
        return "–"
    if not unit and value < 1000 and value == int(value):
        return f"{value:.0f}"
    number, prefix = scaled(value, _DECIMAL)
    return f"{number} {prefix}{unit}".rstrip()


@register.filter
def ratio(value: float | None) -> str:
    """A plain ratio with three significant digits; a dash for None."""
    return "–" if value is None else significant(value)


@register.filter
def scientific(value: float | None) -> str:
    """A small number as 1.9e-6; a dash for None."""
    if value is None:
        return "–"
    number, exponent = f"{value:.1e}".split("e")
    return f"{number}e{int(exponent)}"


@register.filter
def short(value: float | None) -> str:
    """A number without needless digits, such as 1 or 0.8; a dash for None."""
    return "–" if value is None else f"{value:g}"


@register.filter
def half_width(measurement: object) -> str:
    """Half an interval over its middle, as ±0.8 %."""
    low, high, middle = _bounds(measurement)
    if not middle:
        return ""
    return plus_minus((high - low) / 2 / middle)


def _bounds(measurement: Any) -> tuple[float, float, float]:
    """(low, high, middle) of an `Estimate`, or of a result's measurement."""
    if isinstance(measurement, Measurement):
        return measurement.low_ns, measurement.high_ns, measurement.time_ns
    return measurement.low, measurement.high, measurement.value


_SIGNS = {"": "○", "good": "✓", "warn": "!", "bad": "✗", "accent": "●"}


@register.simple_tag
def chip(words: str, kind: str = "", extra: str = "", *, sign: str = "") -> SafeString:
    """A short statement with a sign; `kind` is good, warn, bad, accent or empty."""
    return format_html(
        '<span class="badge {} {}"><span aria-hidden="true">{}</span>{}</span>',
        kind, extra, sign or _SIGNS[kind], words,
    )  # fmt: skip


@register.simple_tag
def speedup(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    spread: float | None = None,
    over: str = "baseline",
    sure: bool = True,
) -> SafeString:
    """A speedup with its sign; neutral if its interval, or the usual noise, contains 1.

    A provisional one, which isn't `sure`, gets no color and no judgment. `spread` is half the
    interval relative to the value, as evaluations store it, and replaces `low` and `high`. `over`
    names the baseline.
    """
    if value is None:
        return SafeString('<span class="faint">–</span>')
    if spread is not None:
        low, high = ends(value, spread)
    known = f"{between(low, high)}, " if low is not None and high is not None else ""
    low = value / (1 + NOISE) if low is None else low
    high = value * (1 + NOISE) if high is None else high
    if not sure:
        name, sign, words = "neutral", "", f"compared with the {over}, {known}provisional"
    elif low > 1:
        name, sign, words = "faster", "▲", f"{known}faster than the {over}"
    elif high < 1:
        name, sign, words = "slower", "▼", f"{known}slower than the {over}"
    else:
        name, sign, words = "neutral", "≈", f"{known}not different from the {over}"
    return format_html(
        '<span class="speedup {}" title="{}"><span class="sign" aria-hidden="true">{}</span>'
        '{}<span class="visually-hidden"> {}</span></span>',
        name, words, sign, times(value), words,
    )  # fmt: skip


UNPRICED = "price unknown"
_WHY_UNPRICED = "At least one of the language models that were used has no price."


@register.simple_tag
def cost(paid: float | None, *, unpriced: int = 0, is_plain: bool = False) -> str:
    """What language models cost, None if nobody knows; `is_plain` where no button may stand.

    unpriced: how many calls of unknown price come on top.
    """
    if paid is None or unpriced:
        words = UNPRICED if paid is None else f"{usd(paid)} + unknown"
        return words if is_plain else explained(words, _WHY_UNPRICED)
    return usd(paid)


@register.filter
def ago(moment: datetime | None) -> SafeString:
    """How long ago, with the exact time in the title; a dash for None."""
    if moment is None:
        return SafeString("–")
    elapsed_s = max((timezone.now() - moment).total_seconds(), 0)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        moment.isoformat(),
        f"{moment:%Y-%m-%d %H:%M:%S}",
        "now" if elapsed_s < 1 else f"{period(elapsed_s)} ago",
    )


@register.filter
def period(elapsed_s: float | None) -> str:
    """A length of time in its largest unit, such as 3 min; a dash for None."""
    if elapsed_s is None:
        return "–"
    passed_s = max(elapsed_s, 0.0)  # two hosts' clocks may disagree
    length_s, unit = next((size, unit) for least, size, unit in _PERIODS if passed_s >= least)
    return f"{passed_s // length_s:.0f} {unit}"


@register.filter
def plain(value: Any) -> str:
    """A float of a result with seven digits; the words nan and inf stay words."""
    return "–" if value is None else f"{float(value):.7g}"


@register.filter
def error(scaled: float | None) -> str:
    """An error over its bound: 0.031, or 12.5 with a cross where it is too large."""
    if scaled is None:
        return "–"
    shown = f"{scaled:.2g}"
    return shown if scaled <= 1 else f"✗ {shown}"


@register.filter
def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


@register.filter
def get(mapping: Any, key: str) -> Any:
    """An entry of a mapping, or None."""
    return mapping.get(key) if mapping else None


@register.simple_tag(takes_context=True)
def nav_link(context: Context, name: str, label: str) -> SafeString:
    """A link of the main navigation, marked where it leads to the page that is open."""
    address = reverse(name)
    path = context["request"].path if "request" in context else ""
    current = SafeString(' aria-current="page"') if path.startswith(address) else ""
    return format_html('<a href="{}"{}>{}</a>', address, current, label)
