"""Evaluates the shipped kernels of the built-in tasks, and prints a table.

python -m tests.bench.shipped [--device cuda] [--mode quick] [--only REGEX] [--naive]
    [--baselines] [--values] [--json OUT] [--workers 3] [--minutes 9] [--indices 0,2]

With --values, a kernel is called a few times and not timed well: on every workload, and on every
public one with each family of values that the task's other workloads have (docs/integrity.md).

All GPUs of the host, or those named, take part; on each one kernel is measured at a time, and the
rest of several evaluations overlaps.

A row is printed as soon as it is there. With --json, rows are kept in that file, one JSON object
a line, and a later call goes on where this one stopped.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import encode
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.formats import built_in_tasks
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import BASELINE_PLAN, PLANS
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from gpu_runner.supervisor import baselines as known
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from tests.bench.evaluations import Entry, build_all, make_config, run_one
from tests.bench.spread import devices_of, spread, workers
from tests.bench.tables import heading, table

COLUMNS = ("task", "kernel", "verdict", "time", "best baseline", "speedup", "of the limit")
LONG_NS = 50_000.0
BASELINE_S = 0.3  # of a workload: less than `ranked` takes, which needs its ratio to 0.5 %
FORGED = (0.9, 0.8, 0.5)  # of the true time
VALUES_PLAN = Plan(processes=1, min_calls=3, max_calls=3, hidden=True, varied=8)
"""Makes more calls with other values than there are families: none comes again before all came."""
GOOD = (Verdict.CORRECT, Verdict.UNSTABLE)  # a time that varies makes no kernel wrong


def entries(kind: DeviceKind, *, naive: bool = False, eager: bool = False) -> list[Entry]:
    """The kernels in the language of this kind of device; with `naive`, only the naive ones.

    With `eager` that is their tasks' only baseline: others are compiled for every workload.
    """
    return [
        Entry(f"{t.name} {k.path}", _with_eager(t) if eager else t, t.files[k.path], k.direction)
        for t in built_in_tasks()
        for k in t.kernels
        if k.language is kind.language and (not naive or k.agent.endswith("-naive"))
    ]


def _with_eager(task: Task) -> Task:
    return dataclasses.replace(task, baselines=tuple(b for b in task.baselines if b == "eager"))


def row_of(entry: Entry, result: EvaluationResult, took_s: float) -> dict[str, Any]:
    """What the table needs to know; times in ns, geometric means over the listed workloads."""
    return {
        "label": entry.label,
        "digest": entry.task.digest(),
        "verdict": result.verdict.value,
        "latency_ns": result.latency_ns,
        "speedup": result.speedups.get("best"),
        "floor_fraction": result.floor_fraction,
        "outside": [
            {"workload": w.name, "claimed_ns": w.measurement.time_ns, **encode(w.outside)}
            for w in result.workloads
            if w.measurement is not None and w.outside is not None
        ],
        "varied": sum(run.varied for w in result.workloads for run in w.processes),
        "suspicions": [f"{s.check}: {s.reason}" for s in result.suspicions],
        "took_s": took_s,
        "reason": "" if result.verdict is Verdict.CORRECT else f"{result.reason} {result.mismatch}",
        "log": result.log[-2000:] if result.verdict is Verdict.SYSTEM_ERROR else "",
    }


def forgeries(rows: Sequence[dict[str, Any]]) -> str:
    """What the outside clock would make of claims of less than these honest times."""
    times = [time for row in rows for time in row["outside"] if time["claimed_ns"] >= LONG_NS]
    least = [(time["claimed_ns"], time["bound_ns"] - time["error_ns"]) for time in times]
    counts = (
        f"{share:.0%}: {sum(share * claimed < bound for claimed, bound in least)}"
        for share in FORGED
    )
    return f"claims rejected of {len(times)} workloads of 50 us or more: {', '.join(counts)}"


def cells(row: dict[str, Any]) -> list[str]:
    """A line of the table."""
    name, _, kernel = row["label"].partition(" ")
    latency_ns, speedup, fraction = row["latency_ns"], row["speedup"], row["floor_fraction"]
    return [
        name,
        Path(kernel).stem,
        row["verdict"],
        duration_text(latency_ns) if latency_ns else "-",
        duration_text(latency_ns * speedup) if latency_ns and speedup else "-",
        f"{speedup:.2f}" if speedup else "-",
        f"{fraction:.0%}" if fraction else "-",
    ]


class Rows:
    """The rows so far, in memory and in a file."""

    def __init__(self, path: Path | None) -> None:
        """Read the rows of an earlier call."""
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.all: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def missing(self, chosen: Iterable[Entry]) -> list[Entry]:
        """Those of which there is no row for the present version of their task."""
        known = {(row["label"], row["digest"]) for row in self.all}
        return [entry for entry in chosen if (entry.label, entry.task.digest()) not in known]

    def add(self, row: dict[str, Any]) -> None:
        """Print and keep a row."""
        self.all.append(row)
        words = (row["reason"], *row["suspicions"], row["log"])
        print(*cells(row), f"{row['took_s']:.1f} s", *words, flush=True)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")


@dataclasses.dataclass(frozen=True)
class Work:
    """Evaluates an entry; one of these goes to every worker."""

    config: SupervisorConfig
    mode: Mode
    baselines: bool
    values: bool

    def __call__(self, entry: Entry, index: int) -> dict[str, Any]:
        """The entry's row, measured on the device of this index."""
        if self.values:
            PLANS[self.mode] = VALUES_PLAN
            logging.basicConfig(level=logging.INFO)  # says which family it was
        if self.baselines:
            PLANS[self.mode] = dataclasses.replace(PLANS[self.mode], baselines=True)
            known.BASELINE_PLAN = dataclasses.replace(BASELINE_PLAN, budget_s=BASELINE_S)
        config = dataclasses.replace(self.config, index=index)
        return row_of(entry, *run_one(entry, config, self.mode, None))


def parse_arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", type=DeviceKind, default=DeviceKind.CUDA)
    parser.add_argument("--indices", default="", help="of devices, such as 0,2; default: all")
    parser.add_argument("--mode", type=Mode, default=Mode.QUICK)
    parser.add_argument("--only", default="", help="regular expression over 'task path'")
    parser.add_argument("--naive", action="store_true", help="only the naive kernels")
    parser.add_argument("--baselines", action="store_true", help="time `eager`, as `ranked` does")
    parser.add_argument("--values", action="store_true", help="with each other family of values")
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    parser.add_argument("--json", type=Path)
    parser.add_argument("--workers", type=workers, default=1, help="processes a device")
    parser.add_argument("--minutes", type=float, default=1e6, help="start nothing new after it")
    parser.add_argument("--build-only", action="store_true")
    return parser.parse_args()


def main() -> int:
    """Print the table; 1 if a kernel was not right, or is suspicious."""
    options = parse_arguments()
    devices = devices_of(options.device, options.indices)
    until = time.monotonic() + 60 * options.minutes
    config = make_config(options.device, options.cache)
    every = entries(options.device, naive=options.naive, eager=options.baselines)
    chosen = [entry for entry in every if re.search(options.only, entry.label)]
    rows = Rows(options.json)
    build_all(rows.missing(chosen), config)
    if options.build_only:
        return 0
    work = Work(config, options.mode, options.baselines, options.values)
    left = rows.missing(chosen)
    for row in spread(work, left, devices=devices, each=options.workers, until=until):
        rows.add(row)
    current = {(entry.label, entry.task.digest()) for entry in chosen}
    shown = [row for row in rows.all if (row["label"], row["digest"]) in current]
    shown.sort(key=lambda row: row["label"])
    print(heading(config))
    print(table(COLUMNS, [cells(row) for row in shown]))
    if options.values:
        print(f"{sum(row['varied'] for row in shown)} calls with other values were verified")
    else:
        print(forgeries(shown))
    print(f"{len(rows.missing(chosen))} of {len(chosen)} were not tried")
    return int(any(row["verdict"] not in GOOD or row["suspicions"] for row in shown))


if __name__ == "__main__":
    raise SystemExit(main())
