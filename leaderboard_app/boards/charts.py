"""Figures of the leaderboard as plain data for plotly.js; the page's script adds the colours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from leaderboard_app.boards.ranking import Group, fast_curve

_LINES = COLOURS = 8
"""Lines of a chart, and colours of the page's palette."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def fast_p_figure(groups: Sequence[Group]) -> dict[str, Any]:
    """Curves of fast_p over p for the first groups, each name in its own colour and dash."""
    traces = []
    taken: set[int] = set()
    for group in groups[:_LINES]:
        points = fast_curve(group.speedups, group.problems)
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
    return {"data": traces, "layout": _layout()}


def _free_slot(name: str, taken: set[int]) -> int:
    """The name's own colour, or the next one that no other line of the chart has."""
    preferred = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    slots = ((preferred + step) % COLOURS for step in range(COLOURS))
    return next(slot for slot in slots if slot not in taken)


def _layout() -> dict[str, Any]:
    ticks = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16]
    return {
        "xaxis": {
            "type": "log",
            "title": {"text": "p: speedup against the best baseline"},
            "tickvals": ticks,
            "ticktext": [f"{tick:g}×" if tick >= 1 else f"1/{1 / tick:.0f}×" for tick in ticks],
            "range": [-1.204, 1.204],
        },
        "yaxis": {"title": {"text": "fast_p, % of the tasks"}, "range": [0, 102], "dtick": 25},
        "margin": {"l": 60, "r": 16, "t": 16, "b": 52},
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": -0.28},
        "height": 380,
    }
