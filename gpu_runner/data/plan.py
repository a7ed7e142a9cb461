"""What a mode asks of a measurement; `data.protocol` has the numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_runner.data.task import Workload


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a mode asks of a measurement."""

    processes: int
    """Fresh processes that are timed."""
    min_calls: int
    """Single calls of a workload in a process, at least."""
    max_calls: int
    """And at most."""
    precision: float = 0.01
    """Relative half-width of the calls' median at which a workload is done in a process."""
    enough_ns: float = 0.0
    """Half-width in ns that is precise enough on a GPU, whatever part of the median it is."""
    budget_s: float = 0.5
    """Seconds of calls after which a workload is done with `LEAST_CALLS`."""
    extra_processes: int = 0
    """May be added while the result is too noisy."""
    first_calls: bool = False
    """Whether a few verified calls come first, in a process of their own."""
    hidden: bool = False
    """Whether unlisted workloads are measured, and other hidden ones checked."""
    baselines: bool = False
    """Whether baselines are measured."""
    sample_bytes: int = 64 << 20
    """Bytes of outputs that are sampled for verification, per workload and process."""
    min_samples: int = 2
    """Calls whose outputs are sampled, at least, however large they are."""
    max_samples: int = 8
    """And at most, however small."""
    bursts: int = 0
    """Bursts of calls that the supervisor's clock times on a GPU, per workload and process."""
    burst_workloads: int = 0
    """Workloads that have bursts, drawn anew each time; 0 for all."""
    sampled_of_bursts: int = 4
    """Calls of bursts that are verified."""
    is_calibrated: bool = False
    """Whether a clock that is unknown or outdated is calibrated for every workload.

    Else an outdated calibration will do.
    """
    varied: int = 0
    """Calls with other input distributions at least, per listed workload and process."""
    shapes: int = 0
    """Shapes of other sizes than the listed workloads', verified and not timed, in one process."""
    max_varied: int = 8
    """Of those, how many are sampled for verification at most."""
    near: bool = False
    """Whether a workload's first call is followed by one with nearly its inputs, in their places.

    A kernel that knows inputs by a part of them hands out the wrong outputs then.
    """
    team: int = 0
    """Threads of an OpenMP team at least, in a process whose calls are not timed.

    0 leaves it to the measured processors.
    """

    def looks(self) -> tuple[int, ...]:
        """After how many processes it is asked whether the result is precise enough.

        Twice as many each time: whoever looks after each one stops at a lucky moment.
        """
        most = self.processes + self.extra_processes
        counts = [self.processes]
        while counts[-1] < most:
            counts.append(min(2 * counts[-1], most))
        return tuple(counts)

    def for_unlisted(self) -> Plan:
        """The same for unlisted workloads: together they are half of a score."""
        budget_s, max_calls = self.budget_s / 2, self.max_calls // 2
        return replace(self, budget_s=budget_s, max_calls=max_calls, varied=0)

    def for_checks(self) -> Plan:
        """The same for hidden workloads that are checked and never timed."""
        least = self.min_samples + 1
        return replace(
            self, processes=1, min_calls=least, max_calls=least, bursts=0, varied=0, budget_s=0.0
        )

    def on(self, workload: Workload) -> Plan:
        """The plan for a workload of a task."""
        if workload.unlisted:
            return self.for_unlisted()
        return self.for_checks() if workload.hidden else self

    def sampled_calls(self, output_bytes: int) -> int:
        """How many calls' outputs are sampled, drawn at random among all calls."""
        affordable = self.sample_bytes // max(output_bytes, 1)
        return max(self.min_samples, min(self.max_samples, affordable))
