"""A roofline: what each workload reaches, below what its device can do for its intensity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_runner.data.environment import Peaks
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.floor import PARTS
from gpu_runner.data.verdict import Mode
from runs_app.submitting.page import TENSOR_CORES, WorkloadRow, peak_name
from tasks_app.numbers import percent, significant
from tasks_app.templatetags.display import amount

_EDGE = 3.0


@dataclass(frozen=True)
class Segment:
    """A line from one place to another, in percent of the picture."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, kw_only=True)
class Roof:
    """What a device can do at most, by its maker or as measured."""

    kind: str
    words: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, kw_only=True)
class Point:
    """A workload: what it reaches at its intensity, and its share of the lowest roof."""

    name: str
    x: float  # percent of the picture, as y
    y: float
    words: str


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """A picture with logarithmic axes: intensity to the right, rate upwards."""

    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    x_ticks: tuple[tuple[float, str], ...]  # place in percent, and label; as below
    y_ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class _Peak:
    kind: str
    bytes_per_s: float
    flop_per_s: float


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round(_EDGE + (100 - 2 * _EDGE) * share, 2)

    def powers(self) -> list[float]:
        step = max(1, math.ceil((self.high - self.low) / 5))
        return [10.0**e for e in range(math.ceil(self.low), math.floor(self.high) + 1, step)]


def roofline(result: EvaluationResult, rows: Sequence[WorkloadRow], dtype: str) -> Roofline | None:
    """The roofline of a result; None where nothing of peaks or of arithmetic is known."""
    known = _known_peaks(result)
    work = {w.name: w for w in result.workloads}
    points = [
        (row, flops, moved, row.measurement.time_ns / 1e9)
        for row in rows
        if row.measurement and (flops := work[row.name].flops) and (moved := work[row.name].bytes)
    ]
    if not known or not points:
        return None
    ridges = [peak.flop_per_s / peak.bytes_per_s for peak in known]
    intensities = [flops / moved for _, flops, moved, _ in points]
    x = _scale([*intensities, *ridges], margin=0.5)
    rates = [flops / seconds for _, flops, _, seconds in points]
    tops = [peak.flop_per_s for peak in known]
    y = _scale([*rates, *tops], margin=0.3)
    lowest = known[-1]
    return Roofline(
        roofs=tuple(_roof(peak, x, y) for peak in known),
        points=tuple(
            Point(
                name=row.parameters or row.name,
                x=x.at(flops / moved),
                y=100 - y.at(flops / seconds),
                words=f"{significant(flops / moved)} FLOP per byte,"
                f" {amount(flops / seconds, 'FLOP/s')}:"
                f" {_share(flops / seconds, flops / moved, lowest, dtype)}",
            )
            for row, flops, moved, seconds in points
        ),
        x_ticks=tuple((x.at(v), f"{v:g}") for v in x.powers()),
        y_ticks=tuple((100 - y.at(v), amount(v, "FLOP/s")) for v in y.powers()),
    )


def missing(result: EvaluationResult, rows: Sequence[WorkloadRow], dtype: str) -> str:
    """Why a result that has times has no roofline, and what brings one; empty if it has one."""
    timed = [row for row in rows if row.measurement]
    if not timed or roofline(result, rows, dtype) is not None:
        return ""
    work = {w.name: w for w in result.workloads}
    if not any(work[row.name].bytes for row in timed):
        return ""  # the limits' own sentence says that the task has no work formula
    if not any(work[row.name].flops for row in timed):
        return "No roofline: the task does no arithmetic, so bandwidth is all that matters."
    if result.environment.measured:
        return "No roofline: we don't know how fast this device computes in the task's dtype."
    if result.mode is Mode.PROFILE:
        return "No roofline: the profile couldn't determine what this device can do."
    return (
        "No roofline yet: we haven't measured what this runner's device can do. An evaluation in"
        " profile mode measures it on a CPU, and doctor --calibrate on any device."
    )


def _known_peaks(result: EvaluationResult) -> list[_Peak]:
    peaks = result.environment.peaks or Peaks()
    found = (("theoretical", peaks.theoretical), ("measured", peaks.measured))
    return [_Peak(k, r.bytes_per_s, r.flop_per_s) for k, r in found if r and r.flop_per_s]


def _share(rate: float, intensity: float, peak: _Peak, dtype: str) -> str:
    top = _top(peak, intensity)
    if rate <= top:
        return f"{percent(rate / top)} of what its device can do there"
    if top < peak.flop_per_s:
        return f"{significant(rate / top)} times what memory can deliver, so caches helped"
    if peak.kind == "measured":
        return f"{significant(rate / top)} times the measured peak, so that peak is too low"
    said = f"{significant(rate / top)} times {peak_name(dtype)}"
    return f"{said}, {TENSOR_CORES}" if dtype in PARTS else said


def _top(peak: _Peak, intensity: float) -> float:
    return min(peak.flop_per_s, peak.bytes_per_s * intensity)


def _roof(peak: _Peak, x: _Scale, y: _Scale) -> Roof:
    """A slope of memory up to the ridge, and a flat of arithmetic from there on."""
    ridge = peak.flop_per_s / peak.bytes_per_s
    start = max(10**x.low, 10**y.low / peak.bytes_per_s)  # where the slope enters the picture
    top = 100 - y.at(peak.flop_per_s)
    slope = Segment(x.at(start), 100 - y.at(peak.bytes_per_s * start), x.at(ridge), top)
    flat = Segment(x.at(ridge), top, 100 - _EDGE, top)
    name = "Measured peak" if peak.kind == "measured" else "Physical limit"
    rates = f"{amount(peak.bytes_per_s, 'B/s')} and {amount(peak.flop_per_s, 'FLOP/s')}"
    return Roof(kind=peak.kind, words=f"{name}: {rates}", segments=(slope, flat))


def _scale(values: Sequence[float], margin: float) -> _Scale:
    logs = [math.log10(v) for v in values]
    return _Scale(min(logs) - margin, max(logs) + margin)
