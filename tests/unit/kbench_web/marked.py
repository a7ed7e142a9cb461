"""Results whose hidden numbers are marked, and how to find those in what the site shows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpu_runner.data.evaluation import StageTime
from gpu_runner.data.scores import summary
from gpu_runner.data.verdict import Stage
from runs_app.models import Evaluation
from tests import factories as make

TIME_NS, EAGER_NS, COMPILED_NS = 1237.60927, 2861.34871, 2390.81563
SECONDS = 16.70927
MARKED = {
    "time": TIME_NS, "how long": SECONDS, "when": 31.51873, "percent": 100 * TIME_NS / EAGER_NS,
    "over eager": EAGER_NS / TIME_NS, "over compiled": COMPILED_NS / TIME_NS,
    "public over hidden": 2.0 / (EAGER_NS / TIME_NS),
    "hidden over public": EAGER_NS / TIME_NS / 2.0,
}  # fmt: skip
"""What a kernel chooses by its times of a hidden workload, and what follows from them."""
SEEN = 5  # digits that a number of a page shares with one of these by intention, not by chance
_NUMBER = re.compile(r"\d+\.?\d*")


def digits(text: str) -> str:
    return text.replace(".", "").lstrip("0")[:SEEN]


def found_in(text: str) -> list[str]:
    """Which of the marked numbers stand in a text."""
    marks = {digits(f"{value:.9f}"): name for name, value in MARKED.items()}
    seen = {digits(match[0]) for match in _NUMBER.finditer(text)}
    return sorted(marks[each] for each in seen & set(marks))


def marked_fields() -> dict[str, Any]:
    """Fields of a result whose hidden numbers are marked."""
    baselines_ns = {"eager": EAGER_NS, "compiled": COMPILED_NS}
    over = {name: ns / TIME_NS for name, ns in baselines_ns.items()}
    hidden = make.make_workload_result(
        name=make.HIDDEN_WORKLOAD,
        parameters={"N": 1777},
        hidden=True,
        measurement=make.make_measurement(TIME_NS),
        baselines={name: make.make_measurement(ns) for name, ns in baselines_ns.items()},
        speedups={**over, "best": over["compiled"]},
    )
    workloads = (make.make_workload_result(), hidden)
    return {
        **summary(workloads),
        "unlisted_speedups": hidden.speedups,  # as runners of before say it
        "workloads": workloads,
        "stages": (StageTime(stage=Stage.MEASURE, started_s=31.51873, duration_s=SECONDS),),
        "environment": {
            "blocks": [
                {"name": "process 1", "seconds": 2.5},
                {"name": "hidden workloads, process 1", "seconds": SECONDS, "after": {"W": 1237.6}},
            ]
        },
    }


def mark_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark every result that is made from now on."""
    plain = make.make_result

    def marked(evaluation: Evaluation, **overrides: Any) -> Any:
        return plain(evaluation, **{**marked_fields(), **overrides})

    monkeypatch.setattr(make, "make_result", marked)
