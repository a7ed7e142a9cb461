"""How well the times of fresh evaluations of one kernel agree."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

LONG_NS = 20_000.0
"""Times from here on are to repeat to 1 %, shorter ones to 5 %."""


def differences(evaluations: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    """Largest relative difference from the median of the evaluations: `long` and `short`.

    Each evaluation is its workloads' times in ns, by name. Over all workloads whose median is
    `LONG_NS` or more, and over those below; None without two times of such a workload.
    """
    times: dict[str, list[float]] = {}
    for evaluation in evaluations:
        for name, time_ns in evaluation.items():
            times.setdefault(name, []).append(time_ns)
    found: dict[str, float | None] = {"long": None, "short": None}
    for group in times.values():
        if len(group) < 2:
            continue
        middle = statistics.median(group)
        name = "long" if middle >= LONG_NS else "short"
        largest = max(max(group) - middle, middle - min(group)) / middle
        found[name] = max(found[name] or 0.0, largest)
    return found
