"""How many processes and calls each mode makes, and when a workload has been measured enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.statistics import ESTIMATORS, median_precision


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a mode asks of a measurement.

    precision: relative half-width of a process's median at which a workload is done. budget_s:
    seconds a workload may take in a process beyond its first `min_calls`. extra_processes: may be
    added while the result is too noisy, by kind of device. taken_bytes, min_taken,
    max_taken: how many calls' outputs are kept for verification, per workload and process. bursts:
    how often the coordinator's own clock is asked, per workload and process; taken_of_bursts: their
    calls that are verified.
    varied: calls with other families of values at least, per public workload and process;
    max_varied: how many of them are kept for verification at most.
    """

    processes: int
    min_calls: int
    max_calls: int
    precision: float = 0.005
    budget_s: float = 1.0
    extra_processes: Mapping[DeviceKind, int] = field(default_factory=dict)
    hidden: bool = False
    baselines: bool = False
    judges_noise: bool = False
    taken_bytes: int = 64 << 20
    min_taken: int = 2
    max_taken: int = 16
    bursts: int = 0
    taken_of_bursts: int = 4
    varied: int = 0
    max_varied: int = 8

    def is_done(self, times: Sequence[float], spent_s: float) -> bool:
        """Whether a workload needs no further call in this process."""
        if len(times) < self.min_calls:
            return False
        if len(times) >= self.max_calls or spent_s >= self.budget_s:
            return True
        return median_precision(times) <= self.precision

    def looks(self, kind: DeviceKind) -> tuple[int, ...]:
        """After how many processes it is asked whether the result is precise enough.

        Twice as many each time: whoever looks after each one stops at a lucky moment.
        """
        most = self.processes + self.extra_processes.get(kind, 0)
        # Fastest calls of one process agree with each other, whatever disturbs all of them.
        alone = self.judges_noise and ESTIMATORS[kind].fastest
        counts = [max(self.processes, 2) if alone else self.processes]
        while counts[-1] < most:
            counts.append(min(2 * counts[-1], most))
        return tuple(counts)

    def for_hidden(self) -> Plan:
        """The same for hidden workloads, whose times are not ranked by themselves."""
        return replace(
            self,
            budget_s=self.budget_s / 4,
            max_calls=self.max_calls // 2,
            bursts=self.bursts // 2,
            varied=0,
        )

    def taken_calls(self, output_bytes: int) -> int:
        """How many calls' outputs are kept, drawn at random among all calls."""
        affordable = self.taken_bytes // max(output_bytes, 1)
        return max(self.min_taken, min(self.max_taken, affordable))


_QUICK = Plan(
    processes=1,
    min_calls=9,
    max_calls=60,
    precision=0.01,
    budget_s=0.3,
    extra_processes={DeviceKind.CUDA: 2, DeviceKind.CPU: 4},
    judges_noise=True,
    bursts=4,
)

_RANKED = Plan(
    processes=3,
    min_calls=15,
    max_calls=120,
    budget_s=1.0,
    extra_processes={DeviceKind.CUDA: 4, DeviceKind.CPU: 9},
    hidden=True,
    baselines=True,
    judges_noise=True,
    bursts=4,
    varied=2,  # three processes: each of six families, all that there are beside one's own
)

PLANS = {
    Mode.TEST: Plan(processes=1, min_calls=3, max_calls=3),
    Mode.QUICK: _QUICK,
    Mode.PROFILE: _QUICK,  # the profile itself comes after it, from calls of its own
    Mode.RANKED: _RANKED,
    Mode.AUDIT: _RANKED,  # new seeds by nature; the tools come after it, with calls of their own
}

NULL_PLAN = Plan(processes=1, min_calls=0, max_calls=0, bursts=20)
"""Of a kernel that does nothing: what the coordinator's clock adds to every burst."""

BASELINE_PLAN = Plan(processes=1, min_calls=15, max_calls=150, budget_s=1.5)

BASELINE_PROCESSES = {DeviceKind.CUDA: 1, DeviceKind.CPU: 2}
"""A baseline is remembered: where fastest calls count, two processes must agree on it."""

NOISE_LIMIT = {DeviceKind.CUDA: 0.05, DeviceKind.CPU: 0.15}
"""Relative half-width of the final interval above which a time is noise, not a score.

A CPU is shared with the operating system and, on a small host, with the site itself.
"""

RESOLUTION_NS = {DeviceKind.CUDA: 100.0, DeviceKind.CPU: 250.0}
"""Half-widths below this are the clock's own resolution, whatever part of the time they are.

On a CPU, two reads of cold memory more or less: what lies where differs from process to process.
"""
