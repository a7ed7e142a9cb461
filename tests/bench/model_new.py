"""Evaluates published `ModelNew` files: KernelBench's leaderboard, the best kernel of each problem.

    python -m tests.bench.model_new --repository PATH_OF_A_CHECKOUT [--level 1] [--every 5]
        [--only REGEX] [--mode quick] [--workers 4] [--minutes 9] [--out FOLDER]

A checkout of KernelBenchLeaderboard holds problems, solutions and their published speedups against
eager PyTorch. A problem becomes a task as an admin imports it, and its solution is a Python kernel.
Of the problems, every so many in their order are taken. Published ratios are of another GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_runner.data.durations import duration
from gpu_runner.data.formats import load_task
from gpu_runner.data.verdict import DeviceKind, Language, Mode, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from tests.bench.evaluations import Entry, make_config, run_one
from tests.bench.published_rows import sentence
from tests.bench.spread import devices_of, spread, workers
from tests.bench.tables import heading, table

COLUMNS = ("problem", "by", "verdict", "time", "x eager", "published", "seconds", "reason")
_TITLE = re.compile(r"Level (?P<level>\d+): (?P<number>\d+)_(?P<name>.*)")


@dataclass(frozen=True)
class Published:
    """A solution that the leaderboard shows first; `speedup` is its own, against eager PyTorch."""

    problem: Path
    name: str
    author: str
    speedup: float
    source: str


@dataclass(frozen=True)
class Work:
    """Makes a solution's row; one of these goes to every worker."""

    config: SupervisorConfig
    mode: Mode
    folder: Path | None

    def __call__(self, solution: Published, index: int) -> list[str]:
        """The row, from one evaluation on this device."""
        config = replace(self.config, index=index)
        task = load_task(solution.problem)
        entry = Entry(task.name, task, solution.source, language=Language.PYTHON)
        result, took_s = run_one(entry, config, self.mode, self.folder)
        correct = result.verdict is Verdict.CORRECT and result.latency_ns is not None
        eager = result.speedups.get("eager")
        return [
            f"{task.name} {solution.name}",
            solution.author,
            str(result.verdict),
            duration(result.latency_ns) if correct and result.latency_ns else "-",
            f"{eager:.2f}" if correct and eager else "-",
            f"{solution.speedup:.2f}",
            f"{took_s:.0f}",
            " ".join([sentence(result), *(f"{s.check}: {s.reason}" for s in result.suspicions)]),
        ]


def published(repository: Path, level: int) -> Iterator[Published]:
    """The first solution of each of a level's problems, in the problems' order."""
    assets = repository / "docs/assets"
    found = []
    for title, solutions in json.loads((assets / "data.json").read_text()).items():
        words = _TITLE.fullmatch(title)
        if words and int(words["level"]) == level and solutions:
            found.append((int(words["number"]), words["name"], solutions[0]))
    for number, name, best in sorted(found, key=lambda f: f[0]):
        yield Published(
            problem=assets / "problems" / f"l{level}_p{number}.py",
            name=name.strip("_"),
            author=best["display_name"],
            speedup=best["torch_speedup"],
            source=(assets / "solutions" / f"{best['file']}.py").read_text(),
        )


def main() -> int:
    """Print the table; 1 if an evaluation ended by our own fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--every", type=workers, default=5, help="take one problem in so many")
    parser.add_argument("--only", default="", help="regular expression over problems' names")
    parser.add_argument("--device", type=DeviceKind, default=DeviceKind.CUDA)
    parser.add_argument("--mode", type=Mode, default=Mode.QUICK)
    parser.add_argument("--indices", default="", help="of devices, such as 0,2; default: all")
    parser.add_argument("--workers", type=workers, default=1, help="processes a device")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing new after it")
    parser.add_argument("--out", type=Path, help="folder for the results' JSON")
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    options = parser.parse_args()
    every = list(published(options.repository, options.level))[:: options.every]
    chosen = [solution for solution in every if re.search(options.only, solution.name)]
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    config = make_config(options.device, options.cache)
    until = time.monotonic() + 60 * options.minutes
    devices = devices_of(config.kind, options.indices)
    rows = []
    work = Work(config, options.mode, options.out)
    for row in spread(work, chosen, devices=devices, each=options.workers, until=until):
        rows.append(row)
        print(*row, flush=True)
    print(heading(config))
    print(table(COLUMNS, sorted(rows)))
    print(*(f"{count} {verdict}" for verdict, count in Counter(r[2] for r in rows).items()))
    print(f"{len(chosen) - len(rows)} were not tried")
    return int(any(row[2] == Verdict.SYSTEM_ERROR for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
