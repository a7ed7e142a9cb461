"""What the robust protocol costs: seconds by mode, with and without its outside clock.

python -m tests.bench.protocol_cost [--device cuda] [--task vector_add] [--times 5] [--mode quick]

Builds and calibrations are remembered before anything is timed. Without the outside clock means
no bursts; the frozen runner, poison, guards and verification stay.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.protocol import PLANS
from gpu_runner.data.verdict import DeviceKind, Mode, Stage, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from tests.bench.evaluations import Entry, make_config, run_one
from tests.bench.tables import heading, table

STAGES = (Stage.BUILD, Stage.PREPARE, Stage.BASELINES, Stage.MEASURE, Stage.VERIFY, Stage.AUDIT)
COLUMNS = ("mode", "outside clock", "verdict", "seconds", *map(str, STAGES))
MODES = (Mode.TEST, Mode.QUICK, Mode.RANKED)

Run = tuple[EvaluationResult, float]


@contextmanager
def without_bursts() -> Iterator[None]:
    """Plans that never ask the supervisor's own clock."""
    known = dict(PLANS)
    try:
        PLANS.update({m: dataclasses.replace(plan, bursts=0) for m, plan in known.items()})
        yield
    finally:
        PLANS.update(known)


def rows(entry: Entry, config: SupervisorConfig, mode: Mode, times: int) -> list[list[str]]:
    """Two rows of the table; with and without take turns, so that a slow moment hits both."""
    clocked: list[Run] = []
    plain: list[Run] = []
    run_one(entry, config, mode, None)  # builds, baselines, the empty kernel's time
    for _ in range(times):
        clocked.append(run_one(entry, config, mode, None))
        with without_bursts():
            plain.append(run_one(entry, config, mode, None))
    return [row(mode, "yes" if PLANS[mode].bursts else "none", clocked), row(mode, "no", plain)]


def row(mode: Mode, clock: str, runs: Sequence[Run]) -> list[str]:
    """Medians over runs: the whole, and each stage."""
    verdicts = ", ".join(sorted({str(result.verdict) for result, _ in runs}))
    spent = [_median(stage, runs) for stage in STAGES]
    return [str(mode), clock, verdicts, f"{statistics.median(s for _, s in runs):.2f}", *spent]


def _median(stage: Stage, runs: Sequence[Run]) -> str:
    sums = [sum(t.duration_s for t in r.stages if t.stage is stage) for r, _ in runs]
    return f"{statistics.median(sums):.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default="cpu")
    parser.add_argument("--task", default="vector_add")
    parser.add_argument("--kernel", default="good")
    parser.add_argument("--mode", type=Mode, action="append")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--baselines", action="store_true", help="carry the task's baselines, too")
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    options = parser.parse_args()
    config = make_config(options.device, options.cache)
    task = find_task(options.task)
    suffix = options.device.language.suffix
    source = task.files[f"kernels/{options.kernel}{suffix}"]
    if not options.baselines:
        task = dataclasses.replace(task, baselines=())
    found: list[list[str]] = []
    for mode in options.mode or MODES:
        found += rows(Entry("cost", task, source), config, mode, options.times)
        print(found[-2:], flush=True)
    print(heading(config))
    print(table(COLUMNS, found))
    if any(Verdict.SYSTEM_ERROR in cells[2] for cells in found):
        raise SystemExit("an evaluation failed")


if __name__ == "__main__":
    main()
