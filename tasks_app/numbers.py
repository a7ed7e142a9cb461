"""How kbench writes numbers: 1.72×, 5.02 µs, ±0.4 %, −64 %, $0.07.

Filters of `tasks_app.templatetags.display` are made of these, and so is every text of the site.
"""

from __future__ import annotations

import math

TOO_NOISY = "too noisy for an interval"
_WIDEST = 10.0
"""If the upper end is more than so many times the lower one, the interval says nothing."""
_MOST_SPREAD = 40.0
"""A busy host can make one of several hundred, whose exponential is no float."""

_TIMES = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))


def significant(value: float, digits: int = 3) -> str:
    """`value` with this many significant digits and no exponent: 0.0123, 1.23, 12.3, 1234."""
    if value == 0:
        return "0"
    magnitude = 0
    scaled_value = abs(value)
    while round(scaled_value, digits - 1) >= 10:
        scaled_value /= 10
        magnitude += 1
    while round(scaled_value, digits - 1) < 1 and magnitude > -12:
        scaled_value *= 10
        magnitude -= 1
    return f"{value:.{max(digits - 1 - magnitude, 0)}f}"


def scaled(value: float, scale: tuple[tuple[float, str], ...]) -> tuple[str, str]:
    """A number and its unit, the largest of `scale` that it reaches."""
    factor, unit = scale[0]
    for step, name in scale:
        if abs(value) >= step * 0.9995:
            factor, unit = step, name
    return significant(value / factor), unit


def duration_parts(nanoseconds: float) -> tuple[str, str]:
    """A time as its number and its unit: 5.02 and µs."""
    return scaled(nanoseconds, _TIMES)


def duration_text(nanoseconds: float | None) -> str:
    """Nanoseconds in the unit that fits: 512 ns, 12.3 µs, 4.56 ms; a dash for None."""
    return "–" if nanoseconds is None else " ".join(duration_parts(nanoseconds))


def times(value: float | None) -> str:
    """A ratio: 0.250×, 1.72×, 143×; a dash for None."""
    return "–" if value is None else f"{significant(value)}×"


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
    near = 1 / _WIDEST < ratio < _WIDEST
    return signed((ratio - 1) * 100) if near else times(ratio)


def plus_minus(share: float) -> str:
    """Half an interval relative to its middle: ±0.4 %, ±12 %."""
    if share >= 1:
        return "too noisy"
    return f"±{share * 100:.1f} %" if share < 0.0995 else f"±{share * 100:.0f} %"


def ends(value: float, spread: float) -> tuple[float, float]:
    """Both ends of a 95 % interval, whose half is `spread` relative to the value."""
    factor = math.exp(min(spread, _MOST_SPREAD))
    return value / factor, value * factor


def between(low: float, high: float) -> str:
    """A ratio's 95 % interval: 0.850 to 3.50; in words if it is too wide to say anything."""
    if low <= 0 or high / low > _WIDEST:
        return TOO_NOISY
    return f"95\N{NO-BREAK SPACE}%: {significant(low)} to {significant(high)}"


def usd(value: float | None) -> str:
    """An amount of money: $12.34, or $0.0012 below a cent; a dash for None."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if value >= 0.0995 or value == 0 else f"${significant(value, 2)}"
