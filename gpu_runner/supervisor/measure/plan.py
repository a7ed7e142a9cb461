"""When a workload has been measured enough; `data.protocol` has the plans of each mode."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import LEAST_CALLS
from gpu_runner.supervisor.device.statistics import median_precision


def is_done(plan: Plan, times: Sequence[float], spent_s: float, enough_ns: float = 0.0) -> bool:
    """Whether a workload needs no further call in this process, after these calls' times.

    enough_ns: half-width of their median's interval that is enough, whatever part of it that is.
    """
    if len(times) >= plan.max_calls:
        return True
    if spent_s >= plan.budget_s:
        return len(times) >= min(plan.min_calls, LEAST_CALLS)
    if len(times) < plan.min_calls:
        return False
    precision = max(plan.precision, enough_ns / statistics.median(times))
    return median_precision(times) <= precision
