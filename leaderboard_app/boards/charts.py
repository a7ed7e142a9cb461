"""Figures of the leaderboard as plain data for plotly.js; the page's script adds the colours."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

from leaderboard_app.boards.groups import Group
from leaderboard_app.boards.history import Day, progress
from leaderboard_app.boards.ranking import fast_curve
from tasks_app.numbers import scale_label

_LINES = COLOURS = 8
"""Lines of a chart, and colours of the page's palette."""
_MARGIN = 0.25
"""Room around points that have names, as a part of what their axis shows."""
_LEAST_MARGIN = 0.2
"""The same on an axis of logarithms where all points lie together."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_POWERS = range(-4, 5)
_FAST_P_AXES = {
    "xaxis": {
        "type": "log",
        "title": {"text": "p: speedup over the best baseline"},
        "tickvals": [2.0**power for power in _POWERS],
        "ticktext": [scale_label(power) for power in _POWERS],
        "range": [-1.204, 1.204],
    },
    "yaxis": {"title": {"text": "fast_p, % of the tasks"}, "range": [0, 102], "dtick": 25},
}


def fast_p_figure(groups: Sequence[Group], p: float) -> dict[str, object]:
    """Curves of fast_p over p for the first groups, each name in its own colour and dash."""
    traces = []
    taken: set[int] = set()
    for group in [each for each in groups if each.counted][:_LINES]:
        points = fast_curve(group.rated, group.counted)
        slot = _free_slot(group.owner, taken)
        taken.add(slot)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": group.owner,
                "x": [round(p, 4) for p, _ in points],
                "y": [round(share * 100, 2) for _, share in points],
                "line": {"shape": "hv", "width": 2, "dash": _DASHES[slot % len(_DASHES)]},
                "meta": {"colour": slot},
                "hovertemplate": "%{y:.3g} % of the tasks above %{x:.3g}×<extra>%{fullData.name}"
                "</extra>",
            }
        )
    return {"data": traces, "layout": _layout(380) | _FAST_P_AXES | {"shapes": _mark(p)}}


def cost_figure(groups: Sequence[Group]) -> dict[str, object] | None:
    """Money for each solved problem against the speedup; a line joins those nobody beats in both.

    None where fewer than two names were paid for.
    """
    paid = [
        (group.usd_per_solved, speedup.value, group.owner)
        for group in groups
        if group.usd_per_solved and (speedup := group.score or group.speedup) is not None
    ]
    if len(paid) < 2:
        return None
    paid.sort(key=lambda point: (point[0], -point[1]))
    front, best = [], 0.0
    for point in paid:
        if point[1] > best:
            front.append(point)
            best = point[1]
    return {
        "data": [
            _points(front, "Nobody is both cheaper and faster", mode="lines", colour=1),
            _points(paid, "Each name", mode="markers+text", colour=0),
        ],
        "layout": _layout(320) | _room(paid),
    }


def _room(points: Sequence[tuple[float, float, str]]) -> dict[str, object]:
    """Axes with room for the names around the points; that of money has logarithms."""
    ends = [math.log10(change(usd for usd, _, _ in points)) for change in (min, max)]
    margin = max(_LEAST_MARGIN, (ends[1] - ends[0]) * _MARGIN)
    title = {"text": "USD per solved problem"}
    most = max(speedup for _, speedup, _ in points)
    return {
        "xaxis": {"type": "log", "title": title, "range": [ends[0] - margin, ends[1] + margin]},
        "yaxis": {"title": {"text": "speedup, geometric mean"}, "range": [0, most * (1 + _MARGIN)]},
    }


def progress_figure(days: Iterable[tuple[Day, ...]]) -> dict[str, object] | None:
    """Problems with a result, and those faster than every baseline, by day.

    None before the second day.
    """
    points = progress(days)
    if len(points) < 2:
        return None
    x = [day.isoformat() for day, _, _ in points]
    names = ("with a correct result", "faster than the best baseline")
    lines = [
        {
            "type": "scatter", "mode": "lines", "name": name, "x": x,
            "y": [point[place + 1] for point in points],
            "line": {"shape": "hv", "width": 2}, "meta": {"colour": place},
        }
        for place, name in enumerate(names)
    ]  # fmt: skip
    axis = {"title": {"text": "problems"}, "rangemode": "tozero"}
    return {"data": lines, "layout": _layout(320) | {"yaxis": axis}}


def _points(
    points: Sequence[tuple[float, float, str]], name: str, *, mode: str, colour: int
) -> dict[str, object]:
    return {
        "type": "scatter",
        "mode": mode,
        "name": name,
        "x": [usd for usd, _, _ in points],
        "y": [speedup for _, speedup, _ in points],
        "text": [owner for _, _, owner in points],
        "textposition": "top center",
        "line": {"shape": "hv", "width": 2},
        "marker": {"size": 9},
        "meta": {"colour": colour},
        "hovertemplate": "%{text}: $%{x:.3g}, %{y:.3g}×<extra></extra>",
    }


def _mark(p: float) -> list[dict[str, object]]:
    """A line at the p that the table shows."""
    if p <= 0:
        return []
    line = {"width": 1, "dash": "dot", "color": "#8a8f98"}
    return [{"type": "line", "x0": p, "x1": p, "yref": "paper", "y0": 0, "y1": 1, "line": line}]


def _layout(height: int) -> dict[str, object]:
    return {
        "margin": {"l": 60, "r": 16, "t": 16, "b": 52},
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": -0.28},
        "height": height,
    }


def _free_slot(name: str, taken: set[int]) -> int:
    """The name's own colour, or the next one that no other line of the chart has."""
    preferred = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    slots = ((preferred + step) % COLOURS for step in range(COLOURS))
    return next(slot for slot in slots if slot not in taken)
