"""Runs a runner process under Nsight Compute, in the runner's own jail."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

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
