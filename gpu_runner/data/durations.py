"""Durations as people read them."""

from __future__ import annotations

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def duration(nanoseconds: float) -> str:
    """A time with a fitting unit and four significant digits: `12.34 us`."""
    scale, unit = next((s, u) for s, u in _UNITS if nanoseconds >= s or s == 1.0)
    return f"{nanoseconds / scale:.4g} {unit}"
