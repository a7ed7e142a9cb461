"""Several submissions side by side, and which of their differences are more than noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kbench_client.exits import Exit, Stop
from kbench_client.results import duration, factor, rated, significant, standing, table, workloads

Document = dict[str, Any]


_TOLD = ("verdict", "state", "score", "speedup", "compared_with")


def comparison(submissions: Sequence[Document]) -> Document:
    """Times of several submissions by workload, and how much faster each is than the first.

    Submissions must be of one task and one device; raises `Stop`. A ratio is the first one's time
    over the other's. `differs` says whether it is more than the noise: their own intervals, and how
    far another evaluation of the same source may be off (`noise`, relative). Two builds of
    one source never differ.
    """
    shown = [standing(each) for each in submissions]
    facts = [
        (s["task"], s["direction"], e["device"]) for s, e in zip(submissions, shown, strict=True)
    ]
    for name, values in zip(("task", "direction", "device"), zip(*facts, strict=True), strict=True):
        if len(set(values)) > 1:
            found = ", ".join(sorted(set(values)))
            raise Stop(Exit.MISUSE, f"must be the same for all submissions; found {found}", name)
    timed = [workloads(each) for each in shown]
    common = [name for name in timed[0] if all(name in each for each in timed)]
    noise = [float(each.get("noise") or 0.0) for each in shown]
    between = [math.hypot(noise[0], each) for each in noise]
    apart = [_apart(each, shown[0], least) for each, least in zip(shown, between, strict=True)]
    means = [_mean(each, timed[0], common) for each in timed]
    return {
        "task": facts[0][0],
        "device": facts[0][2],
        "submissions": [
            {name: s[name] for name in ("id", "agent")} | {name: e.get(name) for name in _TOLD}
            for s, e in zip(submissions, shown, strict=True)
        ],
        "noise": max(between),
        "workloads": [
            {
                "name": name,
                "times": [
                    _against(each[name], timed[0][name], least)
                    for each, least in zip(timed, apart, strict=True)
                ],
            }
            for name in common
        ],
        "faster": means,
        "differs": [
            mean is not None and abs(math.log(mean)) > least
            for mean, least in zip(means, apart, strict=True)
        ],
    }


def _apart(evaluation: Document, first: Document, noise: float) -> float:
    """By how much two evaluations must differ at least to be of different kernels."""
    built = [((each.get("result") or {}).get("build") or {}) for each in (evaluation, first)]
    digests = [each.get("digest") for each in built]
    return math.inf if digests[0] and digests[0] == digests[1] else noise


def _against(workload: Document, first: Document, noise: float) -> Document:
    """A time against the first one's; `noise` is what two evaluations may differ by."""
    ours, theirs = workload["measurement"], first["measurement"]
    ratio = theirs["time_ns"] / ours["time_ns"]
    is_faster = ratio > 1  # then our upper end and its lower end are the near ones
    near = "high_ns", "low_ns"
    own, other = near if is_faster else near[::-1]
    least = math.hypot(
        math.log(ours[own] / ours["time_ns"]), math.log(theirs[other] / theirs["time_ns"]), noise
    )
    return {"time_ns": ours["time_ns"], "ratio": ratio, "differs": abs(math.log(ratio)) > least}


def _mean(timed: dict[str, Document], first: dict[str, Document], names: list[str]) -> float | None:
    """Geometric mean of the ratios; None where nothing is common."""
    if not names:
        return None
    ratios = [
        first[name]["measurement"]["time_ns"] / timed[name]["measurement"]["time_ns"]
        for name in names
    ]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _mark(differs: object, place: int) -> str:
    return "" if differs or not place else " ="


def _cell(time: Document, place: int) -> str:
    return f"{duration(time['time_ns'])} ({factor(time['ratio'])}{_mark(time['differs'], place)})"


def comparison_table(found: Document) -> str:
    labels = [f"{each['id'][:8]} {each['agent']}" for each in found["submissions"]]
    rows: list[Sequence[object]] = [("workload", *labels)]
    for each in found["workloads"]:
        cells = [_cell(time, place) for place, time in enumerate(each["times"])]
        rows.append((each["name"], *cells))
    means = zip(found["faster"], found["differs"], strict=True)
    marked = [
        "-" if mean is None else factor(mean) + _mark(differs, place)
        for place, (mean, differs) in enumerate(means)
    ]
    rows.append(("geometric mean", *marked))
    rows.append(("score", *map(rated, found["submissions"])))
    rows.append(("verdict", *(each["verdict"] or "-" for each in found["submissions"])))
    if not found["workloads"]:
        return f"{table(rows)}\nnothing to compare: no workload was timed in all of them"
    most = significant(100 * found["noise"], 2)
    noise = f" (two evaluations of the same source differ by up to {most} %)"
    return f"{table(rows)}\n= : within noise{noise if found['noise'] else ''}"
