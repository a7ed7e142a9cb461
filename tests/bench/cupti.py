"""Compares kbench's times with CUPTI's and with do_bench's, on this host's first GPU.

    python -m tests.bench.cupti [--only REGEX] [--mode quick] [--calls 50]

Evaluates shipped kernels, and one in Triton. Then it calls the same library in this process, with
the L2 cache emptied before each call, and takes the median of what CUPTI says of the kernels of a
call: from the start of the first to the end of the last, where all of them were queued before the
first began. Exit status 1 if a time is not CUPTI's plus what its launches cost, or from 50 µs up
not within two percent of it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import inspect
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import torch

from gpu_runner.data.formats import find_task
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from gpu_runner.engine.problem.arguments import as_signature_says, c_arguments
from gpu_runner.engine.problem.problem import Drawn, Problem, load_problem, write_files
from gpu_runner.supervisor.build.build import build_solution
from tests.adversarial.kernels import FOLDER, HONEST_FOLDER, load_kernel
from tests.bench.evaluations import Entry, make_config, request, run_one
from tests.bench.tables import heading, table

COLUMNS = ("kernel", "workload", "kbench", "CUPTI", "do_bench", "difference", "ratio")
SHIPPED = {
    "vector_add": "good.cu", "matrix_mul": "good.cu", "matrix_transpose": "naive.cu",
    "softmax": "good.cu", "rms_norm": "good.cu",
}  # fmt: skip
LONG_NS, CLOSE = 50_000.0, 0.02
LAUNCH_NS, ERROR_NS = 1_100.0, 500.0  # Source: docs/measurements/gpu.md
WARM_UP = 3
_FLUSH = "FillFunctor"  # of the kernel that empties the cache
_SLEEP, _HELD = "spin_kernel", 200_000  # chosen: 0.1 ms, in which a call's launches are queued
_CTYPES = {
    "int32": ctypes.c_int32, "int64": ctypes.c_int64, "float32": ctypes.c_float,
    "float64": ctypes.c_double, "bool": ctypes.c_bool,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One workload of a kernel; times are in ns."""

    label: str
    workload: str
    kbench: float
    cupti: float
    do_bench: float
    launches: int

    @property
    def is_as_said(self) -> bool:
        """Whether kbench's time means what docs/results.md says."""
        if self.cupti >= LONG_NS:
            return abs(self.kbench / self.cupti - 1) <= CLOSE
        return abs(self.kbench - self.cupti - self.launches * LAUNCH_NS) <= ERROR_NS

    def cells(self) -> list[str]:
        """As text."""
        times = map(duration_text, (self.kbench, self.cupti, self.do_bench))
        more = (self.kbench - self.cupti) / 1e3
        sign = "" if self.is_as_said else " (!)"
        ratio = f"{self.kbench / self.cupti:.3f}{sign}"
        return [self.label, self.workload, *times, f"{more:+.2f} µs", ratio]


def entries() -> Iterator[Entry]:
    """What is compared, each on its smallest and its largest listed workload."""
    for name, file in SHIPPED.items():
        task = find_task(name)
        path = next(path for path in task.files if path.endswith(f"kernels/{file}"))
        yield Entry(f"{name} {file}", task, task.files[path])
    triton = load_kernel(FOLDER / HONEST_FOLDER / "triton_add_ranked.py")
    task = find_task("vector_add")
    yield Entry("vector_add in Triton", task, triton.source, language=Language.PYTHON)


def ends(entry: Entry) -> list[Workload]:
    """The first and the last listed workload of a GPU: the shortest and the longest."""
    public = entry.task.workloads_for(DeviceKind.CUDA, entry.direction, hidden=False)
    return [public[0], public[-1]]


def call_of(
    entry: Entry, library: Path, problem: Problem, workload: Workload
) -> Callable[[], object]:
    """A call of the kernel on drawn inputs."""
    drawn = problem.draw(workload, Direction.FORWARD, 7, "cuda")
    if entry.language is Language.PYTHON:
        return _module_call(entry, workload, drawn)
    expected = problem.expected(workload, Direction.FORWARD, 7, "cuda")
    outputs = iter([torch.empty_like(x) for x in as_signature_says(entry.task, expected)])
    kept: list[object] = []
    for parameter, value in c_arguments(entry.task, workload, drawn):
        held = next(outputs) if value is None else value
        is_tensor = isinstance(held, torch.Tensor)
        kept.append(held)
        kept.append(
            ctypes.c_void_p(held.data_ptr()) if is_tensor else _CTYPES[parameter.dtype](held)
        )
    function = getattr(ctypes.CDLL(str(library)), entry.task.c_signature.symbol)
    function.restype = None
    return lambda: function(*kept[1::2])


def _module_call(entry: Entry, workload: Workload, drawn: Drawn) -> Callable[[], object]:
    file = Path(tempfile.mkdtemp()) / "compared.py"
    file.write_text(entry.source)
    spec = importlib.util.spec_from_file_location("compared", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = inspect.signature(module.forward).parameters
    given = {**workload.parameters, **dict(zip(drawn.names, drawn.arguments, strict=True))}
    return lambda: module.forward(*(given[name] for name in names))


def cupti_ns(call: Callable[[], object], calls: int) -> tuple[float, int]:
    """The median of the kernels' time over so many calls with a cold cache; kernels of a call."""
    flush = torch.empty(
        2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.uint8, device="cuda"
    )
    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(calls):
            flush.fill_(7)
            torch.cuda.synchronize()
            torch.cuda._sleep(_HELD)
            call()
            torch.cuda.synchronize()
        flush.fill_(7)
        torch.cuda.synchronize()
    assert profile.profiler is not None
    events = profile.profiler.kineto_results.events()
    device = torch.autograd.DeviceType.CUDA
    kernels = sorted(
        (e.start_ns(), e.end_ns(), e.name())
        for e in events
        if e.device_type() == device and _SLEEP not in e.name()
    )
    flushes = [place for place, kernel in enumerate(kernels) if _FLUSH in kernel[2]]
    held = [(before + 1, after) for before, after in pairwise(flushes) if after - before > 1]
    spans = [kernels[end - 1][1] - kernels[begin][0] for begin, end in held]
    return statistics.median(spans), statistics.mode(end - begin for begin, end in held)


def do_bench_ns(call: Callable[[], object]) -> float:
    """What Triton's do_bench says; nan without Triton."""
    try:
        from triton.testing import do_bench
    except ImportError:
        return float("nan")
    return float(do_bench(call, return_mode="median")) * 1e6


def rows(entry: Entry, mode: Mode, calls: int, cache: Path) -> Iterator[Row]:
    """Evaluate a kernel, and call it here."""
    config = make_config(DeviceKind.CUDA, cache)
    chosen = ends(entry)
    entry = replace(entry, task=replace(entry.task, workloads=tuple(chosen)))
    result, _ = run_one(entry, config, mode, None)
    if result.verdict is not Verdict.CORRECT:
        raise SystemExit(f"{entry.label}: {result.verdict}, {result.reason}")
    times = {w.name: w.measurement.time_ns for w in result.workloads if w.measurement}
    built = build_solution(request(entry, config, mode), config)
    assert built.library is not None
    with write_files(entry.task) as folder:
        problem = load_problem(entry.task, Path(folder))
        for workload in chosen:
            call = call_of(entry, built.library, problem, workload)
            (found, launches), bench = cupti_ns(call, calls), do_bench_ns(call)
            yield Row(entry.label, workload.name, times[workload.name], found, bench, launches)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="regular expression over labels")
    parser.add_argument("--mode", type=Mode, default=Mode.QUICK)
    parser.add_argument("--calls", type=int, default=50)
    options = parser.parse_args(arguments)
    found: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="cupti-") as cache:
        for entry in entries():
            if re.search(options.only, entry.label):
                for row in rows(entry, options.mode, options.calls, Path(cache)):
                    found.append(row)
                    print(" | ".join(row.cells()), flush=True)
        print(heading(make_config(DeviceKind.CUDA, Path(cache))), end="\n\n")
    print(table(COLUMNS, [row.cells() for row in found]))
    return int(not all(row.is_as_said for row in found))


if __name__ == "__main__":
    sys.exit(main())
