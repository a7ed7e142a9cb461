"""How many processes and calls each mode makes, and when a workload has been measured enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.device.statistics import median_precision
from gpu_runner.supervisor.host.processors import LEAST_TEAM


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a mode asks of a measurement.

    processes: fresh ones that are timed. extra_processes: may be added while the result is too
    noisy. min_calls, max_calls: single calls of a workload in a process; precision: relative
    half-width of their median at which it is done; budget_s: seconds after which it is done with
    `LEAST_CALLS`. is_checked: a few verified calls come first, in a process of their own.
    hidden, baselines: whether these are measured.
    sample_bytes, min_samples, max_samples: how many calls' outputs are sampled for verification,
    per workload and process.
    bursts: of calls that the supervisor's clock times on a GPU, per workload and process;
    burst_workloads: of so many workloads, drawn anew each time, 0 for all; sampled_of_bursts: of
    their calls that are verified. is_calibrated: a clock that is not known yet, or outdated, is
    calibrated for every workload; else an outdated one will do.
    varied: calls with other families of values at least, per public workload and process;
    max_varied: how many of them are sampled for verification at most. team: threads of an OpenMP
    team at least, in a process whose calls are not timed; 0 leaves it to the measured processors.
    """

    processes: int
    min_calls: int
    max_calls: int
    precision: float = 0.01
    budget_s: float = 0.5
    extra_processes: int = 0
    is_checked: bool = False
    hidden: bool = False
    baselines: bool = False
    sample_bytes: int = 64 << 20
    min_samples: int = 2
    max_samples: int = 8
    bursts: int = 0
    burst_workloads: int = 0
    sampled_of_bursts: int = 4
    is_calibrated: bool = False
    varied: int = 0
    max_varied: int = 8
    team: int = 0

    def is_done(self, times: Sequence[float], spent_s: float) -> bool:
        """Whether a workload needs no further call in this process."""
        if len(times) >= self.max_calls:
            return True
        if spent_s >= self.budget_s:
            return len(times) >= min(self.min_calls, LEAST_CALLS)
        return len(times) >= self.min_calls and median_precision(times) <= self.precision

    def looks(self) -> tuple[int, ...]:
        """After how many processes it is asked whether the result is precise enough.

        Twice as many each time: whoever looks after each one stops at a lucky moment.
        """
        most = self.processes + self.extra_processes
        counts = [self.processes]
        while counts[-1] < most:
            counts.append(min(2 * counts[-1], most))
        return tuple(counts)

    def for_hidden(self) -> Plan:
        """The same for hidden workloads, whose times are not ranked by themselves."""
        return replace(
            self,
            processes=1,
            budget_s=self.budget_s / 2,
            max_calls=self.max_calls // 2,
            varied=0,
        )

    def sampled_calls(self, output_bytes: int) -> int:
        """How many calls' outputs are sampled, drawn at random among all calls."""
        affordable = self.sample_bytes // max(output_bytes, 1)
        return max(self.min_samples, min(self.max_samples, affordable))


LEAST_CALLS = 3
"""Of a workload in a process, however long they take: a median of fewer is none."""

CHECK_PLAN = Plan(processes=1, min_calls=2, max_calls=2, team=LEAST_TEAM)
"""Right first, then fast: whoever is wrong hears it before baselines and clocks. Nothing of it is
timed, so OpenMP's teams have threads enough for races to show, whatever the processors."""

_QUICK = Plan(
    processes=1,
    min_calls=6,
    max_calls=24,
    precision=0.02,
    budget_s=0.1,
    max_samples=3,
    bursts=2,
    burst_workloads=1,
)

_RANKED = Plan(
    processes=3,
    min_calls=9,
    max_calls=60,
    extra_processes=3,
    is_checked=True,
    hidden=True,
    baselines=True,
    bursts=2,
    is_calibrated=True,
    varied=2,  # three processes: each of six families, all that there are beside one's own
)

PLANS = {
    Mode.TEST: Plan(processes=1, min_calls=3, max_calls=3),
    Mode.QUICK: _QUICK,
    Mode.PROFILE: _QUICK,  # the profile itself comes after it, from calls of its own
    Mode.RANKED: _RANKED,
    # New seeds by nature; the tools come after it, with calls of their own.
    Mode.AUDIT: replace(_RANKED, baselines=False),
}

EMPTY_BURSTS = 10
"""Of a kernel that does nothing: what the supervisor's clock adds to every burst."""

BASELINE_PLAN = Plan(processes=1, min_calls=9, max_calls=60)

BASELINE_PROCESSES = {DeviceKind.CUDA: 1, DeviceKind.CPU: 2}
"""A baseline is remembered: where fastest calls count, two processes must agree on it."""

NOISE_LIMIT = {DeviceKind.CUDA: 0.05, DeviceKind.CPU: 0.15}
"""Relative half-width of an interval above which more processes are measured.

A CPU is shared with the operating system and, on a small host, with the site itself.
"""

UNSTABLE_FROM = 0.25
"""Relative half-width above which a ranked time, after all processes, is noise and no score."""

RESOLUTION_NS = {DeviceKind.CUDA: 100.0, DeviceKind.CPU: 250.0}
"""Half-widths below this are the clock's own resolution, whatever part of the time they are.

On a CPU, two reads of cold memory more or less: what lies where differs from process to process.
"""
