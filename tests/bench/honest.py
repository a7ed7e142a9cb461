"""Many ranked evaluations of honest kernels on a CPU: is any of them accused, or unstable?

python -m tests.bench.honest [--count 1000] [--minutes 60] [--out honest.jsonl] [--workers 1]
    [--workloads 2]

All shipped kernels in turn, torch extensions too, without baselines; each time on a few listed and
as many hidden ones of their small workloads, drawn anew. Several workers share the processors out
among them, as several runners would. A line of JSON an evaluation is added to the file at once, and
lines that are there count: stop it when you like, and go on later. Exit status 1 if any kernel was
accused, or if 1 % of the evaluations or more were UNSTABLE.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction, Mode, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from gpu_runner.supervisor.host.processors import by_core
from tests.bench.evaluations import Entry, build_all, make_config, run_one
from tests.bench.kept import Line, add_line, read_lines
from tests.bench.shipped import entries
from tests.bench.spread import spread, workers
from tests.bench.tables import heading, table

SMALL_BYTES = 4 << 20
SMALL_FLOPS = 20e6
UNSTABLE_LIMIT = 0.01
COLUMNS = ("task", "evaluations", "CORRECT", "UNSTABLE", "accused", "other", "median s", "closest")


def honest_entries() -> list[Entry]:
    """The shipped CPU kernels, on small workloads."""
    return [
        dataclasses.replace(entry, task=small(entry.task, entry.direction))
        for entry in entries(DeviceKind.CPU)
    ]


def small(task: Task, direction: Direction) -> Task:
    """The task without its large CPU workloads and without baselines."""
    chosen = []
    for workload in task.workloads_for(DeviceKind.CPU, direction, hidden=True):
        cost = task.cost(workload, direction)
        if cost is None or (cost.bytes <= SMALL_BYTES and cost.flops <= SMALL_FLOPS):
            chosen.append(workload)
    return dataclasses.replace(task, workloads=tuple(chosen), baselines=())


def sampled(entry: Entry, turn: int, count: int) -> Entry:
    """The entry on `count` listed and as many hidden workloads, the same for the same turn."""
    rng = random.Random(f"{entry.label} {turn}")
    chosen: list[Workload] = []
    for hidden in (False, True):
        alike = [w for w in entry.task.workloads if w.hidden == hidden]
        chosen += rng.sample(alike, min(count, len(alike)))
    task = dataclasses.replace(entry.task, workloads=tuple(chosen))
    return dataclasses.replace(entry, task=task)


def closest(result: EvaluationResult) -> float | None:
    """Smallest claimed time over what the outside clock asks for; below 1 is an accusation."""
    ratios = [
        w.measurement.time_ns / (w.outside.bound_ns - w.outside.error_ns)
        for w in result.workloads
        if w.measurement and w.outside and w.outside.bound_ns > w.outside.error_ns
    ]
    return min(ratios, default=None)


def line_of(entry: Entry, result: EvaluationResult, seconds: float) -> Line:
    """What is kept of an evaluation."""
    return {
        "label": entry.label,
        "task": result.task,
        "verdict": str(result.verdict),
        "reason": result.reason,
        "suspicions": [f"{s.check}: {s.reason}" for s in result.suspicions],
        "closest": closest(result),
        "seconds": seconds,
        "log": result.log[-2000:],
    }


def accused(line: Line) -> bool:
    """Whether an honest kernel was accused of anything."""
    return line["verdict"] == Verdict.VIOLATION or bool(line["suspicions"])


@dataclasses.dataclass(frozen=True)
class Work:
    """Evaluates an entry on a worker's share of the processors."""

    config: SupervisorConfig
    workers: int

    def __call__(self, entry: Entry, index: int) -> Line:
        """The entry's line; `index` is the worker's."""
        cores = by_core(os.sched_getaffinity(os.getppid()))
        share = max(1, len(cores) // self.workers)
        own = cores[index * share : (index + 1) * share] or cores
        os.sched_setaffinity(0, {cpu for core in own for cpu in core})
        config = dataclasses.replace(self.config, index=index)  # a lock for each worker
        return line_of(entry, *run_one(entry, config, Mode.RANKED, None))


def measure(
    chosen: Sequence[Entry], options: argparse.Namespace, lines: Sequence[Line]
) -> Iterator[Line]:
    """Evaluate what an earlier run has not, until there are enough or the time is up."""
    work = Work(make_config(DeviceKind.CPU, options.cache), options.workers)
    deadline = time.monotonic() + 60 * options.minutes
    done = Counter(line["label"] for line in lines)
    wanted = [chosen[index % len(chosen)] for index in range(options.count)]
    asked: Counter[str] = Counter()
    left = []
    for entry in wanted:
        asked[entry.label] += 1
        if asked[entry.label] > done[entry.label]:
            left.append(sampled(entry, asked[entry.label], options.workloads))
    return spread(work, left, devices=range(options.workers), until=deadline)


def summary(lines: Sequence[Line]) -> list[list[str]]:
    """Rows of the table, a task each and the total."""
    tasks = sorted({line["task"] for line in lines})
    groups = [(task, [line for line in lines if line["task"] == task]) for task in tasks]
    return [_row(name, group) for name, group in [*groups, ("all", list(lines))] if group]


def _row(name: str, lines: Sequence[Line]) -> list[str]:
    fair = [line for line in lines if not accused(line)]
    correct = sum(line["verdict"] == Verdict.CORRECT for line in fair)
    unstable = sum(line["verdict"] == Verdict.UNSTABLE for line in fair)
    near = min((line["closest"] for line in lines if line["closest"] is not None), default=None)
    counts = [len(lines), correct, unstable, len(lines) - len(fair), len(fair) - correct - unstable]
    seconds = statistics.median(line["seconds"] for line in lines)
    return [name, *map(str, counts), f"{seconds:.1f}", f"{near:.3f}" if near is not None else "-"]


def good(lines: Sequence[Line]) -> bool:
    """No accusation, nothing but CORRECT and UNSTABLE, and little of the latter."""
    unstable = sum(line["verdict"] == Verdict.UNSTABLE for line in lines)
    known = all(line["verdict"] in (Verdict.CORRECT, Verdict.UNSTABLE) for line in lines)
    return known and not any(map(accused, lines)) and unstable < UNSTABLE_LIMIT * len(lines)


def main() -> int:
    """Measure, print the table, return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--workers", type=workers, default=1)
    parser.add_argument("--workloads", type=int, default=2, help="listed ones, and hidden ones")
    parser.add_argument("--out", type=Path, default=Path("honest.jsonl"))
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    options = parser.parse_args()
    chosen = honest_entries()
    build_all(chosen, make_config(DeviceKind.CPU, options.cache))
    lines = read_lines(options.out)
    try:
        for line in measure(chosen, options, tuple(lines)):
            lines.append(line)
            add_line(options.out, line)
            print(len(lines), line["label"], line["verdict"], line["reason"], flush=True)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
    print(heading(make_config(DeviceKind.CPU, options.cache)))
    print(table(COLUMNS, summary(lines)))
    return 0 if good(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
