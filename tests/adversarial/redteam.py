"""Runs every hostile and honest kernel of the red team and prints what stopped what.

python -m tests.adversarial.redteam [--device cpu|cuda] [--rows 9,10] [--only REGEX] [--json OUT]
    [--indices 0,2] [--workers 3] [--minutes 9]

On a host with several GPUs all of them take part, or those named. On each one kernel is measured
at a time, and the rest of several evaluations overlaps.

With `--device cpu` and all kernels, a section "compromised runner" follows: what somebody tries who
took a runner over, against a real site.

Exit status 1 if such an attack or a hostile kernel was not stopped as its file says, if an honest
one was accused, if a process, file, mount or memory was left behind, if nobody tries one of the
rows, or if the time was over before all had begun.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.util import Finalize
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.build.build import build_solution
from gpu_runner.supervisor.device.device import device_slug
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from tests.adversarial.catalogue import ROWS, Row
from tests.adversarial.judging import Judgement, Outcome, request, run
from tests.adversarial.kernels import Kernel, load_kernels
from tests.bench.spread import devices_of, spread, workers
from tests.leftovers import left_behind, snapshot

GIB = 1 << 30
COLUMNS = ("row", "kernel", "ABI", "device", "outcome", "what happened", "stopped by")


@dataclass(frozen=True)
class Line:
    """One kernel's line of the table."""

    kernel: Kernel
    judgement: Judgement
    verdict: Verdict
    seconds: float

    def cells(self) -> tuple[str, ...]:
        """The line under `COLUMNS`."""
        kernel, judgement = self.kernel, self.judgement
        rows = ", ".join(map(str, kernel.rows)) or "honest"
        words = (str(judgement.outcome), judgement.happened, judgement.stopped_by)
        return (rows, kernel.path.stem, str(kernel.abi), str(kernel.kind), *words)


def make_config(kind: DeviceKind, cache: Path) -> SupervisorConfig:
    """Short limits: a kernel that hangs or eats memory is found soon."""
    return SupervisorConfig(
        kind=kind,
        device=device_slug(kind, 0),
        cache_folder=cache,
        call_timeout_s=3.0 if kind is DeviceKind.CPU else 10.0,
        memory_bytes=(1 if kind is DeviceKind.CPU else 8) * GIB,
    )


def build_all(kernels: Sequence[Kernel], config: SupervisorConfig) -> None:
    """Fill the cache of builds, a compiler a core."""
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        list(pool.map(lambda kernel: build_solution(request(kernel, config), config), kernels))


@dataclass(frozen=True)
class Work:
    """Runs a kernel and judges; one of these goes to every worker."""

    config: SupervisorConfig

    def __call__(self, kernel: Kernel, index: int) -> Line:
        """The kernel's line, from the device of this index.

        The oracle of the next one starts meanwhile: importing torch takes longer than most kernels.
        """
        began = time.monotonic()
        config = dataclasses.replace(self.config, index=index)
        result, judgement = run(kernel, config, _oracles())
        _oracles().start_ahead(config)
        return Line(kernel, judgement, result.verdict, time.monotonic() - began)


@functools.cache
def _oracles() -> Oracles:
    """Those of this worker; they end before it does."""
    oracles = Oracles()
    Finalize(None, oracles.close, exitpriority=1)
    return oracles


def uncovered(kernels: Sequence[Kernel], kind: DeviceKind) -> list[tuple[Row, str]]:
    """Rows that no kernel of these tries, each with the reason or the test that does."""
    tried = {row for kernel in kernels for row in kernel.rows}
    return [(row, row.instead(kind)) for row in ROWS if row.number not in tried]


def chosen(kernels: Sequence[Kernel], rows: str, only: str) -> list[Kernel]:
    """Kernels of the named rows whose names match a regular expression, if they can be tried."""
    wanted = {int(row) for row in rows.split(",")} if rows else set()
    return [
        kernel
        for kernel in kernels
        if (not wanted or wanted & set(kernel.rows)) and re.search(only, kernel.name)
        if not kernel.lacks
    ]


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default="cpu")
    parser.add_argument("--indices", default="", help="of devices, such as 0,2; default: all")
    parser.add_argument("--rows", default="", help="numbers, separated by commas")
    parser.add_argument("--only", default="", help="regular expression over names")
    parser.add_argument("--workers", type=workers, default=1, help="processes a device")
    parser.add_argument("--minutes", type=float, default=1e6, help="start nothing new after it")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    options = parse_arguments(arguments)
    until = time.monotonic() + 60 * options.minutes
    every = load_kernels(options.device)
    if options.device is DeviceKind.CPU:
        from tests.adversarial.cases import load_cases  # needs pytest

        every = sorted([*every, *load_cases()], key=lambda kernel: (kernel.honest, kernel.rows))
    devices = devices_of(options.device, options.indices)
    resource_tracker.ensure_running()  # of the workers; it lives as long as this process
    before = snapshot()
    with tempfile.TemporaryDirectory(prefix="redteam-") as folder:
        config = make_config(options.device, Path(folder))
        kernels = chosen(every, options.rows, options.only)
        build_all(kernels, config)
        lines = []
        work = Work(config)
        each = options.workers
        for line in spread(work, kernels, devices=devices, each=each, until=until):
            lines.append(line)
            print(f"{' | '.join(line.cells())} | {line.seconds:.1f} s", flush=True)
    left = left_behind(before)
    rows = uncovered(every, options.device)
    if not options.rows and not options.only:
        _print_uncovered(rows, every)
    if options.json:
        options.json.write_text(json.dumps([_document(line) for line in lines], indent=1))
    unbegun = sorted({kernel.name for kernel in kernels} - {line.kernel.name for line in lines})
    status = _conclude(lines, left, [row for row, instead in rows if not instead], unbegun)
    if options.device is DeviceKind.CPU and not (options.rows or options.only):
        from tests.adversarial.compromised.run import show  # needs the site's packages

        status |= show()
    return status


def _print_uncovered(rows: Sequence[tuple[Row, str]], every: Sequence[Kernel]) -> None:
    for kernel in every:
        if kernel.lacks:
            print(f"left out: {kernel.name}, since {kernel.lacks}")
    print("\nrows without a kernel of their own here:")
    for row, instead in rows:
        print(f"{row.number} | {row.title} | {instead or 'NOBODY TRIES IT'}")


def _conclude(
    lines: Sequence[Line], left: Sequence[str], untried: Sequence[Row], unbegun: Sequence[str]
) -> int:
    counts = dict.fromkeys(Outcome, 0)
    for line in lines:
        counts[line.judgement.outcome] += 1
    print("\n" + ", ".join(f"{outcome} {count}" for outcome, count in counts.items()))
    print("left behind: " + ("; ".join(left) if left else "nothing"))
    if untried:
        print("nobody tries row " + ", ".join(str(row.number) for row in untried))
    if unbegun:
        print(f"not begun: {', '.join(unbegun)}")
    good = all(line.judgement.good for line in lines)
    return int(not good or bool(left or untried or unbegun))


def _document(line: Line) -> dict[str, object]:
    cells = dict(zip(COLUMNS, line.cells(), strict=True))
    stops = [str(stop) for stop in line.kernel.stops]
    return {**cells, "verdict": str(line.verdict), "must be stopped by": stops, "s": line.seconds}


if __name__ == "__main__":
    sys.exit(main())
