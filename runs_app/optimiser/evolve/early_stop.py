"""From which time of one workload on a kernel cannot beat the best, whatever the others are."""

from __future__ import annotations

import math
from collections.abc import Mapping

from runs_app.optimiser.evolve.config import Problem
from runs_app.optimiser.evolve.feedback import Feedback

GENEROUS = 0.5
"""Of a limit, the time that another kernel may take at least: limits are estimates."""

MARGIN = 1.2
"""Times are noisy, so what is only this much too slow is measured to its end."""


def must_beat_ns(problem: Problem, best: Feedback | None) -> Mapping[str, float]:
    """By workload, in ns; empty where it cannot be said.

    That is without a best, and where another workload has no limit, or one that may be beaten.

    A kernel's time is the geometric mean over its workloads. So one of them may take as much more
    than the best one's as all others could take less.
    """
    times = {workload.name: workload.time_ns for workload in best.workloads} if best else {}
    limits = {known.workload: known.limit_ns for known in problem.known}
    floors = {
        w.name: None if problem.may_beat(w.name) else w.floor_ns or limits.get(w.name)
        for w in (best.workloads if best else ())
    }
    found = {}
    for name, time_ns in times.items():
        others = [other for other in times if other != name]
        if any(floors[other] is None for other in others):
            continue
        gains = [times[other] / (GENEROUS * (floors[other] or math.inf)) for other in others]
        found[name] = MARGIN * time_ns * math.prod(max(1.0, gain) for gain in gains)
    return found
