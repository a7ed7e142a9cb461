"""Rows of marks on one logarithmic axis; places are percentages of its width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tasks_app.numbers import TOO_NOISY, between, scale_label

_EDGE = 3.0
"""Percent of the width that stays free at either end, so that marks are not cut."""
_MOST_TICKS = 8
_ROOMS = (5, 8, 12, 16, 24, 32, 64)
"""Widths of an axis, in rem, at which more labels find room; `verdict.css` knows them."""
_LETTER = 0.42  # rem that a letter of a label takes at most
_BETWEEN = 0.3  # rem between two labels


@dataclass(frozen=True)
class Tick:
    """A line across all rows; its label is shown where the axis is `room` rem wide or wider."""

    at: float  # percent of the width
    label: str
    is_one: bool = False  # whether it is the line of 1
    room: int = _ROOMS[0]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A value in a row; `kind` chooses its shape, `low` and `high` are the ends of its interval."""

    kind: str
    value: float
    at: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class PlotRow:
    """A label, marks, and the value in words; what the marks show is in the words, too."""

    label: str
    value: str
    marks: tuple[Mark, ...]
    note: str = ""
    address: str = ""
    is_own: bool = False


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A picture: `one_at` is the place of 1, from which bars are drawn."""

    rows: tuple[PlotRow, ...]
    ticks: tuple[Tick, ...]
    one_at: float
    caption: str
    kinds: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True)
class Log2Axis:
    """An axis from 2**low to 2**high."""

    low: int
    high: int

    def at(self, value: float) -> float:
        """Where `value` lies, in percent of the width; values beyond the ends lie at the ends."""
        place = (math.log2(value) - self.low) / (self.high - self.low)
        return round(_EDGE + (100 - 2 * _EDGE) * min(max(place, 0.0), 1.0), 2)

    def mark(
        self, kind: str, value: float, low: float | None = None, high: float | None = None
    ) -> Mark:
        """A mark at `value`, with its interval."""
        return Mark(
            kind=kind,
            value=value,
            at=self.at(value),
            low=None if low is None else self.at(low),
            high=None if high is None else self.at(high),
        )

    def ticks(self) -> tuple[Tick, ...]:
        """A tick at each power of two, or at each second or fourth where there are many."""
        step = 1
        while (self.high - self.low) / step > _MOST_TICKS:
            step *= 2
        steps = {room: self._labelled(room, step) for room in _ROOMS}
        return tuple(
            Tick(
                at=self.at(2.0**e),
                label=scale_label(e),
                is_one=e == 0,
                room=next((r for r, s in steps.items() if e % s == 0), _ROOMS[-1]),
            )
            for e in self._powers(step)
        )

    def _powers(self, step: int) -> list[int]:
        return [e for e in range(self.low, self.high + 1) if e % step == 0]

    def _labelled(self, room: int, step: int) -> int:
        """The least step, doubled from `step`, at which no two labels touch in `room` rem."""
        while any(
            (self.at(2.0**b) - self.at(2.0**a)) / 100 * room
            < (len(scale_label(a)) + len(scale_label(b))) / 2 * _LETTER + _BETWEEN
            for a, b in pairwise(self._powers(step))
        ):
            step *= 2
        return step


def axis_of(values: Iterable[float]) -> Log2Axis:
    """The shortest axis between powers of two that holds 1 and all finite positive values."""
    known = [math.log2(v) for v in values if v > 0 and math.isfinite(v)]
    low, high = math.floor(min([0.0, *known])), math.ceil(max([0.0, *known]))
    if low == high:
        low, high = low - 1, high + 1
    return Log2Axis(low, high)


def shown_ends(low: float | None, high: float | None) -> tuple[float, float] | tuple[()]:
    """Ends of an interval that is drawn; none if it is too wide to say anything."""
    if not low or not high or between(low, high) == TOO_NOISY:
        return ()
    return low, high


def plot(
    axis: Log2Axis, rows: Sequence[PlotRow], caption: str, kinds: Sequence[tuple[str, str]] = ()
) -> Plot:
    """The rows on their axis; `kinds` are shapes with what they stand for."""
    return Plot(
        rows=tuple(rows),
        ticks=axis.ticks(),
        one_at=axis.at(1.0),
        caption=caption,
        kinds=tuple(kinds),
    )
