"""What was tried and lost: a line each, with times, and who is the fastest on each workload."""

from __future__ import annotations

from runs_app.optimiser.evolve.feedback import Feedback, WorkloadTime
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.tried import tried_text
from tests.unit.runs_app.optimiser.evolve.driving import World
from tests.unit.runs_app.optimiser.evolve.test_archive import a_history

TIMES = {1: (50.0, 400.0), 2: (10.0, 90.0), 3: (8.0, 160.0)}
"""Of kernels on a small and a large workload, in microseconds."""


class Timed(World):
    """Its kernels have the times of `TIMES`."""

    def feedback(self, candidate: int, mode: object = None) -> Feedback:
        parts = zip(("small", "large"), TIMES[candidate], strict=True)
        workloads = tuple(
            WorkloadTime(name=n, parameters={}, time_ns=1e3 * t, low_ns=1e3 * t, high_ns=1e3 * t)
            for n, t in parts
        )
        return Feedback(verdict="CORRECT", reason="", workloads=workloads)


def timed_history() -> History:
    """Kernel 2 is the best, and kernel 3 the fastest of the small workload."""
    history = a_history((0, 0, 141e3), (0, 1, 30e3), (0, 1, 36e3))
    history.details = Timed()
    return history


def test_a_line_has_the_times_by_workload_and_the_last_who_leads_where() -> None:
    lines = tried_text(timed_history(), besides=[1]).splitlines()
    assert lines == [
        "- #3: correct, 36.00 us, 1.20x the best one's time (8, 160 us by workload)",
        "",
        "Fastest on each workload so far: small 8 us (#3), large 90 us (#2).",
    ]
