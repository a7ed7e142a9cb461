"""How kbench writes numbers, on the site and in a terminal: 1.72×, 5.02 µs, ±0.4 %, $0.07."""

from __future__ import annotations

_TIMES = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))


def significant(value: float, digits: int = 3) -> str:
    """`value` with this many significant digits and no exponent: 0.0123, 1.23, 12.3, 1234."""
    if value == 0:
        return "0"
    magnitude = int(f"{value:.{digits - 1}e}".split("e")[1])
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


def plus_minus(share: float) -> str:
    """Half an interval relative to its middle: ±0.4 %, ±12 %."""
    if share >= 1:
        return "too noisy"
    return f"±{share * 100:.1f} %" if share < 0.0995 else f"±{share * 100:.0f} %"


def usd(value: float | None) -> str:
    """An amount of money: $12.34, or $0.0012 below a cent; a dash for None."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if value >= 0.0995 or value == 0 else f"${significant(value, 2)}"
