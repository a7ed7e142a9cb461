"""Evaluates robust-kbench's published kernels from their own task folders, beside its figures.

    python -m tests.bench.robust_kbench --repository PATH_OF_A_CHECKOUT [--only NAME]

A published time is the mean of robust-kbench's warm timer on its authors' H100; ours is the median
of cold calls on this host, in float32 without TF32, on the first workload of the task's folder.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.formats import load_task
from gpu_runner.data.verdict import DeviceKind, Direction, Mode, Verdict
from gpu_runner.supervisor.host.config import default_cache_folder
from tests.bench.evaluations import Entry, build_all, make_config, run_one
from tests.bench.tables import heading, table

COLUMNS = (
    "task",
    "verdict",
    "ours (us)",
    "published (us)",
    "x eager",
    "published x eager",
    "x compiled",
    "published x compiled",
    "wall (s)",
)


def entries(repository: Path) -> Iterator[tuple[Entry, Mapping[str, str]]]:
    """The published kernels with their rows of `highlighted/results.csv`."""
    csv.field_size_limit(sys.maxsize)
    with (repository / "highlighted/results.csv").open() as file:
        for row in csv.DictReader(file):
            direction = Direction.FORWARD if row["forward"] == "True" else Direction.BACKWARD
            name = row["task_name"]
            task = load_task(repository / "tasks" / name)
            first = next(w for w in task.workloads if direction in w.directions)
            task = dataclasses.replace(task, workloads=(first,))
            source = (repository / "highlighted" / name / direction / "kernel.cu").read_text()
            yield Entry(f"{name}-{direction}", task, source, direction), row


def row_of(
    entry: Entry, published: Mapping[str, str], result: EvaluationResult, took_s: float
) -> list[str]:
    """One line of the table."""
    correct = result.verdict is Verdict.CORRECT and result.latency_ns is not None
    return [
        entry.label,
        str(result.verdict),
        f"{(result.latency_ns or 0) / 1e3:.2f}" if correct else "-",
        f"{float(published['Runtime (ms)']) * 1e3:.2f}",
        _ratio(result, "eager"),
        f"{float(published['Speedup']):.2f}",
        _ratio(result, "compiled"),
        f"{float(published['Speedup Compile']):.2f}",
        f"{took_s:.1f}",
    ]


def _ratio(result: EvaluationResult, name: str) -> str:
    return f"{result.speedups[name]:.2f}" if name in result.speedups else "-"


def main() -> None:
    """Print the table, and why each verdict is what it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--only", default="", help="regular expression over labels")
    parser.add_argument("--mode", type=Mode, default=Mode.RANKED)
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    parser.add_argument("--out", type=Path, help="folder for the results' JSON")
    options = parser.parse_args()
    config = make_config(DeviceKind.CUDA, options.cache)
    chosen = [
        (e, row) for e, row in entries(options.repository) if re.search(options.only, e.label)
    ]
    began = time.monotonic()
    build_all([entry for entry, _ in chosen], config)
    print(f"{len(chosen)} builds side by side: {time.monotonic() - began:.1f} s", flush=True)
    rows, reasons = [], []
    for entry, published in chosen:
        result, took_s = run_one(entry, config, options.mode, options.out)
        rows.append(row_of(entry, published, result, took_s))
        stages = ", ".join(f"{s.stage} {s.duration_s:.1f}" for s in result.stages)
        worst = max((e.scaled for w in result.workloads for e in w.errors), default=float("nan"))
        reasons.append(
            f"- {entry.label}: {result.reason} (error {worst:.3g} of the bound; {stages})"
        )
        errors = result.environment.get("baseline_errors")
        if errors or result.log:
            reasons.append(f"  {errors or ''} {result.log[-1500:]}")
        print(rows[-1], reasons[-1], flush=True)
    print(heading(config))
    print(table(COLUMNS, rows))
    print("\n".join(reasons))


if __name__ == "__main__":
    main()
