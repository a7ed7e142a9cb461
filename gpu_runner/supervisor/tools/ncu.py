"""Runs a process under ncu, reads its table of raw metrics, and sums up a call's kernels."""

from __future__ import annotations

import csv
import functools
import math
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_runner.data.profile import THROUGHPUTS, KernelMetrics
from gpu_runner.supervisor.host.jail import Jail
from gpu_runner.supervisor.runner.wrapper import Report

SECTIONS = (
    "SpeedOfLight",
    "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis",
    "Occupancy",
    "LaunchStats",
    "WarpStateStats",
)
"""Sections, not metrics: ncu knows which counters stand for them on each device."""

LAUNCHES_LIMIT = 64
"""Kernels of a call that are looked at; each is repeated some forty times."""

TIMED_METRICS = ("gpu__time_duration.sum", "launch__registers_per_thread")
"""One pass: no kernel is repeated, and caches are as the kernels before it left them."""

TIMED_LAUNCHES_LIMIT = 4096  # chosen: more than a call has

REPORT_LIMIT_BYTES = 8 << 20  # chosen: what the launches' limit leaves room for
SAW_NOTHING = "ncu saw no kernel, or no counters for it"
_INSTALLATIONS = Path("/opt/nvidia/nsight-compute")
_REPORT = '"$TMPDIR/kbench-ncu.csv"'
_ELAPSED = "pct_of_peak_sustained_elapsed"
_ACTIVE = "pct_of_peak_sustained_active"

METRICS: Mapping[str, tuple[str, ...]] = {
    "compute_throughput_pct": (f"sm__throughput.avg.{_ELAPSED}",),
    "memory_throughput_pct": (f"gpu__compute_memory_throughput.avg.{_ELAPSED}",),
    "dram_throughput_pct": (
        f"gpu__dram_throughput.avg.{_ELAPSED}",
        f"dram__throughput.avg.{_ELAPSED}",
    ),
    "issue_slots_busy_pct": (f"sm__inst_issued.avg.{_ELAPSED}", f"sm__inst_issued.avg.{_ACTIVE}"),
    "sm_busy_pct": (
        f"sm__instruction_throughput.avg.{_ELAPSED}",
        f"sm__instruction_throughput.avg.{_ACTIVE}",
    ),
    "executed_ipc_active_inst_per_cycle": ("sm__inst_executed.avg.per_cycle_active",),
    "executed_ipc_elapsed_inst_per_cycle": ("sm__inst_executed.avg.per_cycle_elapsed",),
    "l1tex_hit_rate_pct": ("l1tex__t_sector_hit_rate.pct",),
    "l2_hit_rate_pct": ("lts__t_sector_hit_rate.pct",),
    "mem_busy_pct": (f"gpu__compute_memory_access_throughput.avg.{_ELAPSED}",),
    "max_bandwidth_pct": (f"gpu__compute_memory_request_throughput.avg.{_ELAPSED}",),
    "mem_pipes_busy_pct": (f"sm__memory_throughput.avg.{_ELAPSED}",),
    "dram_bytes_per_s": ("dram__bytes.sum.per_second",),
    "achieved_occupancy_pct": (f"sm__warps_active.avg.{_ACTIVE}",),
    "theoretical_occupancy_pct": ("sm__maximum_warps_per_active_cycle_pct",),
    "fma_pipe_pct": (f"sm__pipe_fma_cycles_active.avg.{_ELAPSED}",),
    "tensor_pipe_pct": (f"sm__pipe_tensor_cycles_active.avg.{_ELAPSED}",),
    "issue_latency_cycles_per_inst": ("smsp__average_warp_latency_per_inst_issued.ratio",),
}
"""Our names, and ncu's: the first that a report holds. `compute_throughput_pct` is what ncu shows
as SM throughput; the names follow the labels of ncu's own sections."""

LAUNCH_METRICS: Mapping[str, tuple[str, ...]] = {
    "grid_blocks": ("launch__grid_size",),
    "block_threads": ("launch__block_size",),
    "registers_per_thread": ("launch__registers_per_thread",),
    "static_shared_bytes_per_block": ("launch__shared_mem_per_block_static",),
    "dynamic_shared_bytes_per_block": ("launch__shared_mem_per_block_dynamic",),
    "waves_per_sm": ("launch__waves_per_multiprocessor",),
}
"""Of a kernel alone: a mean over unlike kernels would say nothing."""

STALLS_SHOWN = 5  # chosen: of a report for a person
_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_PARTING = re.compile(r"\bspin_kernel\b")  # of `torch.cuda._sleep`
_DURATION = "gpu__time_duration.sum"


@functools.cache
def find() -> str:
    """Path of ncu, or empty."""
    return shutil.which("ncu", path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin") or ""


class Ncu(Report):
    """One profiled process. Use as a context manager; `report` when the process has ended.

    The device's clocks are left alone. The process that is profiled could forge the report, which
    leaves the jail as bytes through an inherited descriptor: it is advice, and judges nothing.
    """

    def __init__(self, path: str, *, timed: int = 0) -> None:
        """`path` is where ncu is; `timed` for times and names alone, of so many calls' kernels."""
        super().__init__(REPORT_LIMIT_BYTES)
        self._path, self._timed = path, timed

    def command(self, program: Sequence[str]) -> list[str]:
        """The command line that runs `program` under ncu."""
        options = ["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        options += ["--target-processes", "application-only", "--profile-from-start", "off"]
        if self._timed:
            launches = str(self._timed * TIMED_LAUNCHES_LIMIT)
            options += ["--launch-count", launches, "--cache-control", "none"]
            options += ["--metrics", ",".join(TIMED_METRICS)]
        else:
            options += ["--launch-count", str(LAUNCHES_LIMIT)]
            options += [word for section in SECTIONS for word in ("--section", section)]
        script = f'"$0" --log-file {_REPORT} "$@"; cat {_REPORT} >&{self.descriptor}'
        return ["/bin/bash", "-c", script, self._path, *options, *program]

    def jail(self, jail: Jail) -> Jail:
        """The same jail with ncu in it; the runner is told to mark its calls."""
        installed = [Path(self._path).resolve().parent, _INSTALLATIONS]
        paths = [path for path in installed if path.exists() and not path.is_relative_to("/usr")]
        return replace(
            jail,
            paths=[*jail.paths, *paths],
            environment={**jail.environment, "KERNEL_PROFILED": "1"},
            profiled=True,
        )


def complaint(report: str, printed: str) -> str:
    """Why ncu gave no counters, in its own words; empty if it says nothing."""
    for line in [*report.splitlines(), *printed.splitlines()]:
        if line.startswith("==ERROR=="):
            return line.removeprefix("==ERROR==").strip()[:300]
    return ""


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel, with ncu's metrics by their own names."""

    name: str
    duration_ns: float
    raw: Mapping[str, float]


def parse(report: str) -> list[Launch]:
    """The launches in a report made with `--csv --page raw --print-units base`.

    Lines that begin with `==` are ncu's own words; the second row of the table holds units. What is
    no such table, for a kernel's name may have any length, has no launches.
    """
    lines = (line for line in report.splitlines() if not line.startswith("=="))
    try:
        rows = list(csv.reader(lines))
    except csv.Error:
        return []
    if len(rows) < 2 or "Kernel Name" not in rows[0]:
        return []
    names, launches = rows[0], []
    for row in rows[2:]:
        cells = dict(zip(names, row, strict=False))
        raw = {name: value for name, cell in cells.items() if (value := _number(cell)) is not None}
        if raw.get(_DURATION, 0.0) > 0:
            launches.append(Launch(cells["Kernel Name"], raw[_DURATION], raw))
    return launches


def parted(launches: Sequence[Launch]) -> list[list[Launch]]:
    """The launches of each workload, which the torch runner parts by a busy wait."""
    found: list[list[Launch]] = [[]]
    for launch in launches:
        if _PARTING.search(launch.name):
            found.append([])
        else:
            found[-1].append(launch)
    return found


def _number(cell: str) -> float | None:
    try:
        value = float(cell.replace(",", ""))  # thousands are parted where the locale does so
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def complete(launches: Sequence[Launch]) -> list[Launch]:
    """Those launches that have the counters that every profile shows."""
    return [
        launch
        for launch in launches
        if all(any(source in launch.raw for source in METRICS[name]) for name in THROUGHPUTS)
    ]


def total(launches: Sequence[Launch]) -> dict[str, float]:
    """Metrics of a whole call, weighted by the launches' durations."""
    duration = sum(launch.duration_ns for launch in launches)
    counts = {"kernel_duration_ns": duration, "launches_count": float(len(launches))}
    return {**counts, **_weighted(launches, METRICS), **_stalls(launches)}


def kernels(launches: Sequence[Launch]) -> tuple[KernelMetrics, ...]:
    """The same for each kernel, the one that takes longest first."""
    by_name: dict[str, list[Launch]] = {}
    for launch in launches:
        by_name.setdefault(launch.name, []).append(launch)
    found = [_kernel(name, group) for name, group in by_name.items()]
    return tuple(sorted(found, key=lambda kernel: -(kernel.duration_ns or 0.0)))


def _kernel(name: str, launches: Sequence[Launch]) -> KernelMetrics:
    metrics = {
        "launches_count": float(len(launches)),
        **_weighted(launches, METRICS),
        **_weighted(launches, LAUNCH_METRICS),
        **_stalls(launches),
    }
    duration = sum(launch.duration_ns for launch in launches)
    return KernelMetrics(name=name, duration_ns=duration, metrics=metrics)


def _weighted(
    launches: Sequence[Launch], wanted: Mapping[str, tuple[str, ...]]
) -> dict[str, float]:
    found = {}
    for name, candidates in wanted.items():
        source = next((c for c in candidates if any(c in launch.raw for launch in launches)), None)
        if source is not None:
            found[name] = _mean(launches, source)
    return found


def _mean(launches: Iterable[Launch], source: str) -> float:
    having = [launch for launch in launches if source in launch.raw]
    duration = sum(launch.duration_ns for launch in having)
    return sum(launch.raw[source] * launch.duration_ns for launch in having) / duration


def _stalls(launches: Sequence[Launch]) -> dict[str, float]:
    """The reasons for which warps waited longest, in cycles per issued instruction."""
    sources = {name for launch in launches for name in launch.raw}
    found = {
        match[1]: _mean(launches, source)
        for source in sources
        if (match := _STALL.fullmatch(source)) and match[1] != "selected"
    }
    longest = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:STALLS_SHOWN]
    return {f"stall_{name}_cycles_per_inst": value for name, value in longest if value > 0}
