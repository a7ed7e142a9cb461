"""Measures one kernel on one workload in many fresh evaluations: how repeatable is its median?

python -m tests.bench.repeat --task softmax --kernel K.cu --workload NAME [--times 10]
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from pathlib import Path

from gpu_runner.data.formats import find_task
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.verdict import Language, Mode
from gpu_runner.supervisor.host.config import default_cache_folder
from tests.bench.evaluations import Entry, make_config, run_one
from tests.bench.tables import heading


def main() -> None:
    """Print the medians, their spread, and what an evaluation costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", required=True)
    parser.add_argument("--kernel", type=Path, required=True)
    parser.add_argument("--workload", action="append", required=True)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    options = parser.parse_args()
    kind = next(v for v in Language if v.suffix == options.kernel.suffix).device_kinds[-1]
    config = make_config(kind, options.cache)
    task = find_task(options.task)
    chosen = tuple(w for w in task.workloads if w.name in options.workload)
    entry = Entry("repeat", dataclasses.replace(task, workloads=chosen), options.kernel.read_text())
    runs = [run_one(entry, config, Mode.QUICK, None) for _ in range(options.times)]
    print(heading(config))
    for index, workload in enumerate(chosen):
        medians = [
            measurement.time_ns
            for result, _ in runs
            if (measurement := result.workloads[index].measurement) is not None
        ]
        centre, low, high = statistics.median(medians), min(medians), max(medians)
        print(
            f"{workload.name}: median {duration_text(centre)} over {len(medians)} fresh "
            "evaluations,"
            f" range {duration_text(low)} to {duration_text(high)},"
            f" standard deviation {statistics.pstdev(medians) / centre:.2%},"
            f" largest difference from the median {max(high - centre, centre - low) / centre:.2%}"
        )
    print("verdicts:", sorted({str(result.verdict) for result, _ in runs}))
    print("wall of an evaluation (s):", [round(took_s, 1) for _, took_s in runs])
    stages = {s.stage: round(s.duration_s, 2) for s in runs[-1][0].stages}
    print("stages of the last one (s):", {str(stage): took for stage, took in stages.items()})


if __name__ == "__main__":
    main()
