"""Evaluates CUDAMaster's published kernels, from a checkout of MSKernelBenchDemo.

    python -m tests.bench.published --repository PATH [--precision bf16] [--only REGEX]
        [--mode quick] [--repeat 5] [--beside 5] [--indices 0,2] [--workers 3] [--minutes 9]
        [--out FOLDER]

All are built side by side first. All GPUs of the host take part, or those named; on each one kernel
is measured at a time, and with --workers the rest of several evaluations overlaps. With --repeat,
each is evaluated that often, and the largest difference of the times is said. With --beside, so
many compilers are busy all the while. With --out, rows are kept in that folder, each result beside
them, and a later call with the same settings goes on where this one stopped. --build-only
--architecture sm_90 says, without a GPU, which of them compile.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from gpu_runner.data.codec import encode
from gpu_runner.data.formats import built_in_tasks
from gpu_runner.data.formats.mskernelbench import PRECISIONS
from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.build import build
from gpu_runner.supervisor.device.environment import environment
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from tests.bench.beside import compilers_beside
from tests.bench.evaluations import Entry, build_all, make_config, request, run_one
from tests.bench.kept import Line, add_line, read_lines
from tests.bench.published_rows import COLUMNS, Run, cells, digest, refused_row, row_of, summary
from tests.bench.published_sources import Published, Refused, published
from tests.bench.spread import devices_of, spread, workers
from tests.bench.tables import heading, table


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a row depends on besides its kernel."""

    mode: Mode
    repeat: int
    beside: int
    device: str


def entry_of(kernel: Published, number: int = 0) -> Entry:
    """The kernel as an entry; fresh evaluations of it are told apart by their number."""
    label = f"{kernel.label}-{number}" if number else kernel.label
    return Entry(label, kernel.task, kernel.source)


def build_only(
    kernels: Sequence[Published],
    cache: Path,
    architecture: str,
    kind: DeviceKind = DeviceKind.CUDA,
) -> int:
    """Compile for an architecture that this host need not have; how many do not compile."""
    config = SupervisorConfig(kind=kind, cache_folder=cache)
    asked = [request(entry_of(kernel), config, Mode.COMPILE) for kernel in kernels]
    with ExitStack() as stack:
        if architecture:  # instead of that of the host's GPU
            instead = mock.patch.object(build, "cuda_architecture", return_value=architecture)
            stack.enter_context(instead)
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=os.cpu_count() or 1))
        every = list(pool.map(lambda r: build.build_solution(r, config), asked))
    failed = [(k, built) for k, built in zip(kernels, every, strict=True) if not built.report.ok]
    for kernel, built in failed:
        print(f"{kernel.label} does not compile: {built.why_not(config)}")
    print(f"{len(kernels) - len(failed)} of {len(kernels)} compile")
    return len(failed)


@dataclasses.dataclass(frozen=True)
class Work:
    """Makes a kernel's row; one of these goes to every worker."""

    config: SupervisorConfig
    settings: Settings
    folder: Path | None

    def __call__(self, kernel: Published, index: int) -> Line:
        """The row, from as many fresh evaluations as the settings say, on this device."""
        config = dataclasses.replace(self.config, index=index)
        runs: list[Run] = [
            run_one(entry_of(kernel, number), config, self.settings.mode, self.folder)
            for number in range(self.settings.repeat)
        ]
        return row_of(kernel, runs, digest(kernel, dataclasses.asdict(self.settings)))


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--precision", choices=list(PRECISIONS), help="default: all")
    parser.add_argument("--only", default="", help="regular expression over PRECISION-OPERATOR")
    parser.add_argument("--mode", type=Mode, default=Mode.QUICK)
    parser.add_argument("--repeat", type=workers, default=1, help="fresh evaluations of each")
    parser.add_argument("--beside", type=int, default=0, help="compilers that are busy meanwhile")
    parser.add_argument("--indices", default="", help="of devices, such as 0,2; default: all")
    parser.add_argument("--workers", type=workers, default=1, help="processes a device")
    parser.add_argument("--minutes", type=float, default=1e6, help="start nothing new after it")
    parser.add_argument("--out", type=Path, help="folder for rows.jsonl and the results")
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--architecture", default="", help="to build for, without a GPU")
    return parser.parse_args(words)


def chosen_kernels(options: argparse.Namespace) -> tuple[list[Published], list[Refused]]:
    """The kernels that the command line names, and the files that are none."""
    precisions = [options.precision] if options.precision else list(PRECISIONS)
    every = published(options.repository, built_in_tasks(), precisions)
    found = [kernel for kernel in every if re.search(options.only, kernel.label)]
    kernels = [kernel for kernel in found if isinstance(kernel, Published)]
    return kernels, [kernel for kernel in found if isinstance(kernel, Refused)]


def measure_all(
    kernels: Sequence[Published], config: SupervisorConfig, options: argparse.Namespace
) -> list[Line]:
    """Rows of all kernels that there was time for, those of earlier calls among them."""
    settings = Settings(
        mode=options.mode, repeat=options.repeat, beside=options.beside, device=config.device
    )
    until, out = time.monotonic() + 60 * options.minutes, options.out
    known = {line["digest"]: line for line in (read_lines(out / "rows.jsonl") if out else [])}
    keys = {kernel.label: digest(kernel, dataclasses.asdict(settings)) for kernel in kernels}
    left = [kernel for kernel in kernels if keys[kernel.label] not in known]
    entries = [entry_of(kernel) for kernel in left]
    build_all(entries, config)
    with ExitStack() as stack:
        if options.beside and left:
            beside = stack.enter_context(compilers_beside(options.beside, entries, config))
            stack.callback(lambda: print(f"builds beside: {beside.made}, failed: {beside.failed}"))
        work = Work(config, settings, out / "results" if out else None)
        devices = devices_of(config.kind, options.indices)
        for line in spread(work, left, devices=devices, each=options.workers, until=until):
            known[line["digest"]] = line
            print(*cells(line), flush=True)
            if out:
                add_line(out / "rows.jsonl", line)
    return [known[key] for key in keys.values() if key in known]


def main() -> int:
    """Print the table; 1 if a file was no kernel, or an evaluation ended by our own fault."""
    options = parse_arguments()
    if options.out:
        (options.out / "results").mkdir(parents=True, exist_ok=True)
    kernels, refused = chosen_kernels(options)
    for kernel in refused:
        print(f"{kernel.label} is not wrapped: {kernel.reason}")
    if options.build_only:
        return int(build_only(kernels, options.cache, options.architecture) > 0 or bool(refused))
    config = make_config(DeviceKind.CUDA, options.cache)
    rows = measure_all(kernels, config, options)
    shown = rows + [refused_row(kernel) for kernel in refused]
    print(heading(config))
    at_once = f"{options.workers} at once on a device, {options.beside} builds beside"
    print(f"mode {options.mode}, {options.repeat} evaluations each, {at_once}")
    print(table(COLUMNS, [cells(row) for row in shown]))
    print(*summary(shown), f"{len(kernels) - len(rows)} were not tried", sep="\n")
    if options.out:
        asked = {"mode": options.mode, "repeat": options.repeat, "beside": options.beside}
        whole = {"environment": environment(config), "settings": asked, "rows": shown}
        (options.out / "published.json").write_text(json.dumps(encode(whole), indent=1))
    return int(bool(refused) or any("SYSTEM_ERROR" in row["verdicts"] for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
