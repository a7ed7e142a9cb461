"""Readings of runners' sensors: stored once a minute, kept for a week, shown as curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpu_runner.data.event import SENSORS
from runs_app.features.operations.models import RunnerReading
from runs_app.models import Runner

_EVERY = timedelta(minutes=1)
_KEPT = timedelta(days=7)
_WIDTH, _HEIGHT = 600.0, 90.0
_MOST_POINTS = 300
LABELS = {
    "temperature_c": ("Temperature", "°C"),
    "clock_mhz": ("Clock", "MHz"),
    "memory_clock_mhz": ("Memory clock", "MHz"),
    "power_w": ("Power", "W"),
}
assert set(LABELS) == set(SENSORS)


def record(runner: Runner, sensors: Mapping[str, float], now: datetime) -> None:
    """Keep what a heartbeat says, once a minute; forget what is older than a week."""
    told = {name: sensors[name] for name in SENSORS if name in sensors}
    values = {name: value for name, value in told.items() if math.isfinite(value)}
    rows = RunnerReading.objects.filter(runner=runner)
    if not values or rows.filter(at__gt=now - _EVERY).exists():
        return
    RunnerReading.objects.create(runner=runner, at=now, **values)
    rows.filter(at__lt=now - _KEPT).delete()


@dataclass(frozen=True)
class Curve:
    """One sensor over time, as an SVG polyline in a box of 600 by 90."""

    label: str
    unit: str
    parts: tuple[str, ...]
    """Points of each unbroken stretch; a gap is where the runner said nothing."""
    least: float  # in `unit`, as the two below
    most: float
    latest: float


def curves(readings: Sequence[RunnerReading], since: datetime, until: datetime) -> list[Curve]:
    """A curve for each sensor that said anything between two moments, in order of `LABELS`."""
    step = max(len(readings) // _MOST_POINTS, 1)
    shown = [*readings[::step]]
    found = []
    for name, (label, unit) in LABELS.items():
        points = [(row.at, getattr(row, name)) for row in shown if getattr(row, name) is not None]
        if points:
            found.append(_curve(label, unit, points, since, until, step))
    return found


def _curve(
    label: str,
    unit: str,
    points: list[tuple[datetime, float]],
    since: datetime,
    until: datetime,
    step: int,
) -> Curve:
    values = [value for _, value in points]
    least, most = min(values), max(values)
    span_s = max((until - since).total_seconds(), 1.0)
    height = (most - least) or 1.0
    parts: list[list[str]] = []
    before: datetime | None = None
    for at, value in points:
        if before is None or at - before > 5 * step * _EVERY:
            parts.append([])
        x = (at - since).total_seconds() / span_s * _WIDTH
        y = _HEIGHT - (value - least) / height * _HEIGHT if most > least else _HEIGHT / 2
        parts[-1].append(f"{x:.1f},{y:.1f}")
        before = at
    drawn = tuple(" ".join(part) for part in parts)
    return Curve(label, unit, drawn, least, most, values[-1])
