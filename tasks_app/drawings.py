"""Small pictures of numbers as coordinates: a trend, intervals on a shared axis, a stacked bar.

`tasks_app.templatetags.drawing` draws them as SVG, so a page needs no script for them. Units are
those of the picture's own grid; y grows downwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tasks_app.numbers import scale_label

TREND_WIDTH, TREND_HEIGHT = 120.0, 28.0
AXIS_WIDTH = 200.0
NOISE = 0.02
"""A ratio within this of 1 is neither faster nor slower, where no interval is known."""

_TICKS_WIDTH = 7.0
"""Width of an axis's words, in rem, that every page gives them: `.axis-ticks` of components.css."""
_LETTER, _GAP = 0.49, 0.3  # rem: a letter's width there, and the least space between two words
_BEFORE, _AFTER = 1.0, 0.75  # rem: how far words may leave the axis, into the padding of cells

_EDGE = 3.0  # kept free around a trend, for its dot
_FEWEST_OCTAVES = 2


@dataclass(frozen=True)
class Trend:
    """A line through values in order, from left to right, with a dot at its end."""

    path: str
    """The line, as an SVG path; empty where there is one value alone."""
    area: str
    """What lies below the line, as an SVG path; empty like `path`."""
    x: float
    """Where the dot is."""
    y: float
    """Where the dot is, from above."""
    width: float = TREND_WIDTH
    height: float = TREND_HEIGHT


def trend(
    values: Iterable[float | None],
    *,
    log: bool = False,
    steps: bool = False,
    width: float = TREND_WIDTH,
    height: float = TREND_HEIGHT,
) -> Trend | None:
    """A line through the known values; None without any.

    `log` spaces them by ratio, and leaves out what is not positive. With `steps` a value holds
    until the next one, as a record does.
    """
    known = [
        (place, math.log2(value) if log else value)
        for place, value in enumerate(values)
        if value is not None and math.isfinite(value) and (value > 0 or not log)
    ]
    if not known:
        return None
    points = _scaled(known, width, height)
    (x, y), first = points[-1], points[0]
    if len(points) == 1:
        return Trend("", "", x, y, width, height)
    path = f"M{first[0]:.1f} {first[1]:.1f}" + "".join(
        (f"H{right:.1f}V{down:.1f}" if steps else f"L{right:.1f} {down:.1f}")
        for right, down in points[1:]
    )
    area = f"{path}V{height:.1f}H{first[0]:.1f}Z"
    return Trend(path, area, x, y, width, height)


def _scaled(
    known: Sequence[tuple[int, float]], width: float, height: float
) -> list[tuple[float, float]]:
    places, numbers = zip(*known, strict=True)
    least, most = min(numbers), max(numbers)
    first, last = places[0], places[-1]
    wide, high = width - 2 * _EDGE, height - 2 * _EDGE

    def right(place: int) -> float:
        return _EDGE + wide * (place - first) / (last - first) if last > first else width - _EDGE

    def down(number: float) -> float:
        return _EDGE + high * (most - number) / (most - least) if most > least else height / 2

    return [(right(place), down(number)) for place, number in known]


@dataclass(frozen=True)
class Axis:
    """An axis of ratios by octaves, which several rows share; 1 is always on it."""

    low: float
    """Power of two at its left end."""
    high: float
    """Power of two at its right end."""
    width: float = AXIS_WIDTH

    def place(self, ratio: float) -> float:
        """Where a ratio stands; one beyond an end stands at the end."""
        if ratio <= 0:
            return 0.0
        share = (math.log2(ratio) - self.low) / (self.high - self.low)
        return self.width * min(max(share, 0.0), 1.0)

    @property
    def one(self) -> float:
        """Where 1 stands."""
        return self.place(1.0)

    def ticks(self) -> list[tuple[float, str]]:
        """Places in hundredths of the width, and words, of as many powers of two as find room.

        Words are centered on their place, so a long one at an end is left out.
        """
        powers = range(int(self.low), int(self.high) + 1)
        fitting = [(p, tick) for p in powers if _fits(tick := self._tick(p))]
        every = 1
        while not _have_room(ticks := [tick for p, tick in fitting if p % every == 0]):
            every += 1
        return ticks

    def _tick(self, power: int) -> tuple[float, str]:
        return 100 * (power - self.low) / (self.high - self.low), scale_label(power)


def _have_room(ticks: Iterable[tuple[float, str]]) -> bool:
    spans = [_span(*tick) for tick in ticks]
    return all(after[0] - before[1] >= _GAP for before, after in pairwise(spans))


def _fits(tick: tuple[float, str]) -> bool:
    start, end = _span(*tick)
    return start >= -_BEFORE and end <= _TICKS_WIDTH + _AFTER


def _span(at: float, words: str) -> tuple[float, float]:
    """Where a tick's words start and end, in rem."""
    middle, half = at / 100 * _TICKS_WIDTH, len(words) * _LETTER / 2
    return middle - half, middle + half


def axis(ratios: Iterable[float | None]) -> Axis:
    """An axis that holds all these ratios and 1, of two octaves at least."""
    powers = [math.log2(r) for r in ratios if r is not None and math.isfinite(r) and r > 0]
    low, high = math.floor(min([0.0, *powers])), math.ceil(max([0.0, *powers]))
    while high - low < _FEWEST_OCTAVES:
        low, high = low - 1, high + 1
    return Axis(low, high)


@dataclass(frozen=True)
class Interval:
    """A value and its interval on an axis of ratios."""

    start: float  # places on the axis: of both ends, the value, and 1
    end: float
    value: float
    one: float
    width: float  # of the axis
    kind: str
    """"faster", "slower", or "neutral" while the interval holds 1."""

    @property
    def length(self) -> float:
        """From `start` to `end`."""
        return self.end - self.start


def interval(value: float, low: float | None, high: float | None, shared: Axis) -> Interval:
    """A ratio on the axis; without bounds its interval is a point, and noise is assumed."""
    start, end = (value if low is None else low), (value if high is None else high)
    slack = 1 + NOISE if low is None or high is None else 1.0
    kind = "faster" if start > slack else "slower" if end * slack < 1 else "neutral"
    places = (shared.place(start), shared.place(end), shared.place(value))
    return Interval(*places, one=shared.one, width=shared.width, kind=kind)


@dataclass(frozen=True)
class Part:
    """One part of a stacked bar."""

    kind: str
    """What its class in the styles ends with, such as "running"."""
    label: str
    count: float
    share: float
    """Of the whole bar, from 0 to 1."""
    start: float
    """Where it begins, in hundredths of the bar."""

    @property
    def percent(self) -> float:
        """Its length in hundredths of the bar."""
        return 100 * self.share


def stack(counts: Mapping[tuple[str, str], float], whole: float | None = None) -> list[Part]:
    """Parts in order, by (kind, label); `whole` is what fills the bar, else their sum does."""
    total = max(sum(counts.values()), whole or 0.0)
    parts, start = [], 0.0
    for (kind, label), count in counts.items():
        if count > 0:
            share = count / total
            parts.append(Part(kind, label, count, share, 100 * start))
            start += share
    return parts
