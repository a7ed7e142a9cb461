"""A soundness report with counts in the place of all that is as it should be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpu_runner.supervisor.soundness.outcomes import FAILED

_ALWAYS_LISTED = ("reference", "baseline_fn")
"""Honest kernels that a reader of a report asks for by name."""


def brief(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report of `soundness.survey` with counts in the place of what is as it should be.

    Listed stay wrong kernels that did not fail and filters that did not pass. Of the honest
    kernels those stay that are off, the reference, the task's own baseline and the worst of each
    direction. `unlisted` counts the others by direction: {"failed": {workload: wrong kernels},
    "passed": filters, "right": honest kernels}.
    """
    directions = dict.fromkeys(entry["direction"] for entry in report["mutants"])
    counts: dict[str, dict[str, Any]] = {
        direction: {"failed": {}, "passed": 0, "right": 0} for direction in directions
    }
    worst = {
        direction: max(
            (entry for entry in report["honest"] if entry["direction"] == direction),
            key=lambda entry: float(entry["scaled"]),
            default=None,
        )
        for direction in directions
    }
    lists: dict[str, list[Any]] = {"mutants": [], "honest": [], "filters": []}
    for entry in report["mutants"]:
        failed, workload = counts[entry["direction"]]["failed"], entry["workload"]
        if entry["state"] == FAILED:
            failed[workload] = failed.get(workload, 0) + 1
        else:
            lists["mutants"].append(entry)
    for entry in report["honest"]:
        listed = entry["name"] in _ALWAYS_LISTED or entry is worst[entry["direction"]]
        if listed or entry.get("reason"):
            lists["honest"].append(entry)
        else:
            counts[entry["direction"]]["right"] += 1
    for entry in report["filters"]:
        if entry["passed"]:
            counts[entry["direction"]]["passed"] += 1
        else:
            lists["filters"].append(entry)
    return {**report, **lists, "unlisted": counts}


def one_entry_a_line(report: Mapping[str, object]) -> str:
    """The report as JSON in few lines, so that a change of one entry is a change of one line."""
    return (
        "{\n" + ",\n".join(f' "{key}": {_lines(value)}' for key, value in report.items()) + "\n}\n"
    )


def _lines(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in value) + "\n ]"
    return json.dumps(value)
