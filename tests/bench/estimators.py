"""How well a time repeats on this CPU: medians against fastest calls, from halves of processes.

python -m tests.bench.estimators [--only REGEX] [--processes 12]

Each kernel is measured in so many fresh processes. They are shuffled into two halves again and
again, and each estimator makes a time of either: how much do the two differ?
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from gpu_runner.data.protocol import PLANS
from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.device.statistics import Estimator
from gpu_runner.supervisor.host.config import default_cache_folder
from tests.bench.evaluations import build_all, make_config, run_one
from tests.bench.honest import honest_entries
from tests.bench.tables import heading, table

Times = Sequence[Sequence[float]]  # of processes
COLUMNS = ("estimate", "typical difference", "90 % below", "over 15 %")
KERNELS = (
    "conv_1d_bf16 .*|conv_2d kernels.*|categorical_cross_entropy kernels.*|matrix_copy kernels.*"
    "|rms_norm kernels/good.*|vector_add kernels/good.*|sigmoid kernels.*|matrix_power kernels.*"
)
SHUFFLES = 40
SHORTEST_NS = 2_000.0  # below it, two reads of cold memory are all of the difference


def _deciles(processes: Times) -> float:
    quartile = Estimator(fastest=True, quantile=0.25)
    return quartile.of_all([sorted(times)[len(times) // 10] for times in processes])


ESTIMATES: dict[str, Callable[[Times], float]] = {
    "median of medians": Estimator(fastest=False, quantile=0.5),
    "lower quartile of lower deciles": _deciles,
    "lower quartile of fastest calls": Estimator(fastest=True, quantile=0.25),
}


def differences(estimate: Callable[[Times], float], processes: Times) -> list[float]:
    """Relative differences between the estimates of random halves."""
    rng, half = random.Random(0), len(processes) // 2
    found = []
    for _ in range(SHUFFLES):
        drawn = rng.sample(processes, 2 * half)
        found.append(abs(estimate(drawn[:half]) / estimate(drawn[half:]) - 1))
    return found


def row(name: str, measured: Sequence[Times]) -> list[str]:
    """A line of the table."""
    found = sorted(d for processes in measured for d in differences(ESTIMATES[name], processes))
    high = sum(difference > 0.15 for difference in found) / len(found)
    figures = (statistics.median(found), found[int(0.9 * (len(found) - 1))], high)
    return [name, *(f"{figure:.1%}" for figure in figures)]


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=KERNELS, help="regular expression over 'task path'")
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    options = parser.parse_args()
    config = make_config(DeviceKind.CPU, options.cache)
    chosen = [entry for entry in honest_entries() if re.fullmatch(options.only, entry.label)]
    build_all(chosen, config)
    PLANS[Mode.RANKED] = dataclasses.replace(
        PLANS[Mode.RANKED],
        processes=options.processes,
        extra_processes={},
        hidden=False,
        judges_noise=False,
    )
    measured: list[Times] = []
    for entry in chosen:
        public = [w for w in entry.task.workloads if not w.hidden]
        task = dataclasses.replace(entry.task, workloads=tuple(public))
        result, _ = run_one(dataclasses.replace(entry, task=task), config, Mode.RANKED, None)
        print(entry.label, result.verdict, result.reason, flush=True)
        measured += [
            [run.times_ns for run in workload.processes]
            for workload in result.workloads
            if workload.measurement and workload.measurement.time_ns >= SHORTEST_NS
        ]
    print(heading(config))
    print(table(COLUMNS, [row(name, measured) for name in ESTIMATES]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
