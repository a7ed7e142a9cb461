"""How long one decision of each strategy takes, in a simulated run of many candidates.

python -m tests.bench.asks [--candidates 1000]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from runs_app.optimiser.evolve.knobs import find_knobs, space_size
from tests.bench.tables import table
from tests.unit.runs_app.optimiser.evolve.driving import a_config, a_problem, begin
from tests.unit.runs_app.optimiser.evolve.worlds import (
    Landscape,
    World,
    costly,
    talking_world,
    tunable,
)

COLUMNS = ("strategy", "candidates", "median step (ms)", "longest (ms)")
LAST = 100  # steps that count, at the end of the run


def parameters(strategy: str, candidates: int) -> dict[str, Any]:
    """Sizes that ask for more kernels than that, because some answers hold none."""
    return {
        "evolve": {"generations": candidates // 4, "proposals": 8},
        "islands": {"proposals": 2 * candidates, "floor_stop": 0.0},
        "fsr": {"n": 10, "depth": candidates // 5},
        "autotune": {"evaluations": candidates, "patience": candidates},
    }[strategy]


def simulated(strategy: str, candidates: int) -> tuple[int, list[float]]:
    """A run until it has so many candidates: how many, and how long each step took in ms.

    A step tells one outcome and asks until nothing is left, as the site does after an event.
    """
    tuned = strategy == "autotune"
    world = World(judge=Landscape(1).judge) if tuned else talking_world(1)
    problem = a_problem(seed_source=tunable() if tuned else costly(1000.0), floor_ns=None)
    if tuned:
        candidates = min(candidates, space_size(find_knobs(tunable())) - 1)
    config = a_config(strategy, parameters=parameters(strategy, candidates))
    drive = begin(problem, config, world)
    times = []
    while len(drive.history.candidates) < candidates and drive.history.finished is None:
        began = time.perf_counter()
        drive.step(1)
        times.append((time.perf_counter() - began) * 1e3)
    return len(drive.history.candidates), times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=1000)
    options = parser.parse_args()
    rows = []
    for strategy in ("autotune", "islands", "evolve", "fsr"):
        made, times = simulated(strategy, options.candidates)
        last = times[-LAST:]
        rows.append([strategy, str(made), f"{statistics.median(last):.1f}", f"{max(last):.1f}"])
        print(rows[-1], flush=True)
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    main()
