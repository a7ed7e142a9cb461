"""Figures as plain data for plotly.js; the page's script adds the colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runs_app.optimiser.evolve.judging import Bin

_DASHES = ("solid", "dash")
_SYMBOLS = ("circle", "square")


def calibration_figure(bins: Sequence[Bin]) -> dict[str, object]:
    """Mean vote against the share that was correct, beside the line of perfect calibration."""
    known = [each for each in bins if each.count]
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": "perfectly calibrated",
                "x": [0, 1],
                "y": [0, 100],
                "line": {"dash": "dot", "width": 1},
                "meta": {"colour": 7},
                "hoverinfo": "skip",
            },
            {
                "type": "scatter",
                "mode": "lines+markers+text",
                "name": "candidates",
                "x": [each.mean_score for each in known],
                "y": [round((each.correct_share or 0) * 100, 2) for each in known],
                "text": [f"n = {each.count}" for each in known],
                "textposition": "top center",
                "cliponaxis": False,
                "line": {"width": 2},
                "marker": {"size": 9},
                "meta": {"colour": 0},
                "hovertemplate": "mean vote %{x:.2f}: %{y:.1f} % correct (%{text})<extra></extra>",
            },
        ],
        "layout": layout("Mean vote", "Correct on hardware, %")
        | {"yaxis": {"title": {"text": "Correct on hardware, %"}, "range": [-4, 112]}}
        | {"xaxis": {"title": {"text": "Mean vote"}, "range": [-0.04, 1.04]}},
    }


def tuning_figure(generations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Accuracy by generation: training and held-out of the best prompt, and of each other one."""
    best = [each for each in generations if each.get("train")]
    traces = [
        _accuracy("training, best of the generation", best, "train", 0),
        _accuracy("held-out, same prompt", [g for g in best if g.get("held_out")], "held_out", 1),
    ]
    others = [
        (each["number"], share)
        for each in generations
        for prompt in each.get("prompts", ())
        if (share := _share(prompt.get("train"))) is not None
    ]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "training, every prompt",
            "x": [number for number, _ in others],
            "y": [round(share * 100, 2) for _, share in others],
            "marker": {"size": 7, "symbol": "circle-open"},
            "meta": {"colour": 7},
            "hovertemplate": "generation %{x}: %{y:.1f} %<extra>%{fullData.name}</extra>",
        }
    )
    found = layout("Generation", "Right votes, %")
    found["xaxis"] |= {"dtick": 1}
    found["yaxis"] |= {"range": [0, 104]}
    return {"data": traces, "layout": found}


def _accuracy(
    name: str, generations: Sequence[Mapping[str, Any]], key: str, slot: int
) -> dict[str, object]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [each["number"] for each in generations],
        "y": [round((_share(each[key]) or 0) * 100, 2) for each in generations],
        "line": {"width": 2, "dash": _DASHES[slot]},
        "marker": {"size": 8, "symbol": _SYMBOLS[slot]},
        "meta": {"colour": slot},
        "hovertemplate": "generation %{x}: %{y:.1f} %<extra>%{fullData.name}</extra>",
    }


def _share(counts: Mapping[str, Any] | None) -> float | None:
    return counts["right"] / counts["of"] if counts and counts.get("of") else None


def layout(x: str, y: str) -> dict[str, Any]:
    """Of a figure with these titles of its axes."""
    return {
        "xaxis": {"title": {"text": x}},
        "yaxis": {"title": {"text": y}},
        "margin": {"l": 60, "r": 16, "t": 16, "b": 52},
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": -0.25},
        "height": 380,
    }
