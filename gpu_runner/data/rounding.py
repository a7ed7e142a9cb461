"""How exactly numbers are told: a kernel could write a message into the digits of its times."""

from __future__ import annotations

from collections.abc import Mapping

HIDDEN = "hidden workloads"
"""With this begins the name of whatever of a measurement is about them alone."""


def three_digits(value: float) -> float:
    """The value with three significant digits: what is told of hidden workloads has no more."""
    return float(f"{value:.3g}")


def all_three_digits(values: Mapping[str, float]) -> dict[str, float]:
    """The same of many, by name."""
    return {name: three_digits(value) for name, value in values.items()}
