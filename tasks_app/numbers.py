"""How the site writes numbers: those of `gpu_runner.data.numbers`, and 42 %, −64 %, $0.07.

Filters of `tasks_app.templatetags.display` are made of these, and so is every text of the site.
"""

from __future__ import annotations

import math

from gpu_runner.data.numbers import (
    duration_parts,
    duration_text,
    plus_minus,
    scaled,
    significant,
    times,
    usd,
)  # fmt: skip

__all__ = [
    "TOO_NOISY", "between", "change", "counted", "duration_parts", "duration_text", "ends",
    "percent", "plus_minus", "scale_label", "scaled", "signed", "significant", "times", "usd",
]  # fmt: skip

TOO_NOISY = "too noisy for an interval"
_WIDEST = 10.0
"""If the upper end is more than so many times the lower one, the interval says nothing."""
_MOST_SPREAD = 40.0
"""A busy host can make one of several hundred, whose exponential is no float."""


def scale_label(power: int) -> str:
    """A power of two on an axis of ratios: 1/64×, 1×, 8×."""
    return f"{2**power}×" if power >= 0 else f"1/{2**-power}×"


def percent(value: float | None) -> str:
    """A share: 42.0 %; a dash for None."""
    if value is None:
        return "–"
    return f"{significant(value * 100)} %" if 0 < value < 1 else f"{value * 100:.0f} %"


def signed(value: float, unit: str = "%") -> str:
    """A difference with a true minus: +4.2 %, −64 %, −1.5 points; `value` is in that unit."""
    sign = "−" if value < 0 else "+"
    return f"{sign}{significant(abs(value), 2 if abs(value) < 100 else 3)} {unit}"


def change(ratio: float) -> str:
    """A new value compared with an old one: −64 %, or 2144× if they are far apart."""
    near = 1 / _WIDEST < ratio < _WIDEST or not ratio  # nothing at all is 100 % less
    return signed((ratio - 1) * 100) if near else times(ratio)


def ends(value: float, spread: float) -> tuple[float, float]:
    """Both ends of a 95 % interval, whose half is `spread` relative to the value."""
    factor = math.exp(min(spread, _MOST_SPREAD))
    return value / factor, value * factor


def between(low: float, high: float) -> str:
    """A ratio's 95 % interval: 0.850 to 3.50; in words if it is too wide to say anything."""
    if low <= 0 or high / low > _WIDEST:
        return TOO_NOISY
    return f"95\N{NO-BREAK SPACE}%: {significant(low)} to {significant(high)}"


def counted(count: int, noun: str) -> str:
    """A number and its noun: 1 check, 2 checks."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
