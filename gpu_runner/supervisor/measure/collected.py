"""What a process has returned, workload by workload."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpu_runner.data.evaluation import Mismatch, OutputError, ProcessRun
from gpu_runner.data.integrity import Burst
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import LEAST_CALLS, Margin
from gpu_runner.data.task import Values
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.device.statistics import median_precision
from gpu_runner.supervisor.measure.burst_sizes import cut_short
from gpu_runner.supervisor.measure.layout import Layout
from gpu_runner.supervisor.measure.outside import EmptyKernelTime, counted, least_of_call
from gpu_runner.supervisor.measure.sampled_outputs import Sample
from gpu_runner.supervisor.runner.answer import Answer
from gpu_runner.supervisor.runner.faults import Fault, FaultError

_SCATTERED = 2.0  # chosen: the slowest call over the fastest, which tells of a busy host
_BUSY_BUDGET_S = 1.0  # chosen: beside 14 busy processes, 19 us looked like 4 ms in three calls


def is_done(
    plan: Plan,
    times: Sequence[float],
    spent_s: float,
    enough_ns: float = 0.0,
    claims: Sequence[float] = (),
) -> bool:
    """Whether a workload needs no further call in this process, after these calls' times.

    enough_ns: half-width of their median's interval that is enough, whatever part of it that is.
    claims: what the process says of the same calls.
    """
    if len(times) >= plan.max_calls:
        return True
    if spent_s >= _budget_s(plan, [*times, *claims]):
        return len(times) >= min(plan.min_calls, LEAST_CALLS)
    if len(times) < plan.min_calls:
        return False
    precision = max(plan.precision, enough_ns / statistics.median(times))
    return median_precision(times) <= precision


def _budget_s(plan: Plan, times: Sequence[float]) -> float:
    """The plan's seconds, or more where calls, or claims and clock, differ by times."""
    is_scattered = bool(times) and max(times) > _SCATTERED * min(times)
    return max(plan.budget_s, _BUSY_BUDGET_S) if is_scattered else plan.budget_s


SINGLES = (Sample.SINGLE, Sample.FASTEST, Sample.LEAST_CPU, Sample.LEAST_GATED)
BURSTS = (Sample.BURST, Sample.LEAST_BURST)


@dataclass
class Collected:
    """What one process has returned for one workload.

    times_ns: what it claims of single calls; counted_ns: of each, what counts (`judge.Facts`).
    """

    times_ns: list[float] = field(default_factory=list)
    counted_ns: list[float] = field(default_factory=list)
    host_ns: list[int] = field(default_factory=list)
    held_ns: list[float] = field(default_factory=list)
    gate_ns: list[float] = field(default_factory=list)
    late_ns: list[int] = field(default_factory=list)
    kept_ns: list[int] = field(default_factory=list)
    threads: int = 0
    others_ns: list[int] = field(default_factory=list)  # of the empty kernel's other threads
    seeds: list[int] = field(default_factory=list)
    layouts: Sequence[Layout] = ()  # of the last single call
    sampled: dict[Sample, dict[int, int]] = field(default_factory=dict)  # slot -> index of the call
    bursts: list[Burst] = field(default_factory=list)
    burst_seeds: list[int] = field(default_factory=list)
    varied: list[tuple[Values, int]] = field(default_factory=list)  # with the seed of each call
    watched_seeds: list[int] = field(default_factory=list)  # of calls after those that are timed
    hard_ns: list[float] = field(default_factory=list)  # what it claims of those with hard values
    least_mean_ns: float = math.inf  # of a burst that counts so far
    least_calls: int = 1  # of that burst
    most: int = 1  # calls of the largest burst
    sizes: list[int] = field(default_factory=list)  # of the bursts that are still to be made
    spent_s: float = 0.0
    enough_ns: float = 0.0  # of `Plan`; 0 where fastest calls count: the next may be faster

    @property
    def is_cut(self) -> bool:
        """See `burst_sizes.cut_short`."""
        return cut_short(self.bursts, self.most, self.counted_ns)

    def new_extremes(self, answer: Answer, counted_ns: float, *, held: bool) -> list[Sample]:
        """In what a single call that comes now is the least so far; held: in what was seen, too."""
        times: dict[Sample, tuple[float | None, list[float]]] = {}
        times[Sample.FASTEST] = counted_ns, self.counted_ns
        if held:
            times[Sample.LEAST_CPU] = answer.held_ns, self.held_ns
            times[Sample.LEAST_GATED] = answer.gate_ns, self.gate_ns
        return [
            sample
            for sample, (now_ns, before) in times.items()
            if now_ns is not None and now_ns < min(before, default=math.inf)
        ]

    def add(self, answer: Answer, counted_ns: float) -> None:
        """Note a single call, and the time that counts of it."""
        self.times_ns.append(answer.done.time_ns)
        self.counted_ns.append(counted_ns)
        self.host_ns.append(answer.done.host_ns)
        self.held_ns.append(answer.held_ns)
        self.late_ns.append(answer.late_ns)
        self.kept_ns.append(answer.kept_ns)
        self.threads = max(self.threads, answer.threads)
        if answer.gate_ns is not None:
            self.gate_ns.append(answer.gate_ns)

    def add_varied(self, values: Values, seed: int, time_ns: float) -> None:
        """Note a call with other values, whose time does not count."""
        self.varied.append((values, seed))
        if values is Values.HARD:
            self.hard_ns.append(time_ns)

    def add_burst(self, burst: Burst, mean_ns: float) -> bool:
        """Note a burst; whether its mean is the one that bounds the time now."""
        self.bursts.append(burst)
        outdated = 2 * self.least_calls < burst.calls
        least = burst in counted(self.bursts) and (mean_ns < self.least_mean_ns or outdated)
        if least:
            self.least_mean_ns, self.least_calls = mean_ns, burst.calls
            self.sampled[Sample.LEAST_BURST] = {}
        return least

    def is_timed(self, plan: Plan) -> bool:
        """Whether a process needs no further single call."""
        return is_done(plan, self.counted_ns, self.spent_s, self.enough_ns, self.times_ns)

    def see_that_it_can_win(self, name: str, must_beat_ns: Mapping[str, float]) -> None:
        """Raise `FaultError` if even the fastest of a few calls is above this workload's limit."""
        limit_ns = must_beat_ns.get(name)
        if limit_ns is None or len(self.counted_ns) < LEAST_CALLS:
            return
        least_ns = min(self.counted_ns)
        if least_ns > limit_ns:
            reason = (
                f"stopped: {name} takes at least {duration_text(least_ns)}, and above "
                f"{duration_text(limit_ns)} it can't beat the run's best, however fast the rest is"
            )
            raise FaultError(Fault(Verdict.TOO_SLOW, reason))

    def as_run(self, process: int) -> ProcessRun:
        """The facts as they stand in the result."""
        return ProcessRun(
            process=process,
            times_ns=tuple(self.times_ns),
            seeds=tuple(self.seeds),
            verified=self.verified(*SINGLES),
            bursts=tuple(self.bursts),
            burst_seeds=tuple(self.burst_seeds),
            burst_verified=self.verified(*BURSTS),
            host_ns=statistics.median(self.host_ns) if self.host_ns else 0.0,
            hard_ns=tuple(self.hard_ns),
            held_ns=tuple(self.held_ns),
            gate_ns=tuple(self.gate_ns),
            late_ns=tuple(self.late_ns),
            kept_ns=tuple(self.kept_ns),
            threads=self.threads,
            varied=len(self.verified(Sample.VARIED)),
        )

    def verified(self, *reasons: Sample) -> tuple[int, ...]:
        """Indices of the calls that were sampled for one of these reasons, each once."""
        slots = [self.sampled.get(reason, {}) for reason in reasons]
        return tuple(sorted({index for by_slot in slots for index in by_slot.values()}))

    @property
    def calls(self) -> int:
        """Number of calls so far, those of bursts among them."""
        return len(self.seeds) + len(self.burst_seeds) + len(self.varied)


def counted_time(answer: Answer, empty: EmptyKernelTime | None, margin: Margin) -> float:
    """What counts of a single call: the claimed time, or what we saw of it at least, in ns."""
    if empty is None or answer.gate_ns is None:
        return answer.done.time_ns
    return max(answer.done.time_ns, least_of_call(answer.gate_ns, empty, margin))


@dataclass(frozen=True)
class Measured:
    """What one process has returned, by workload, and what it printed."""

    workloads: Mapping[str, Collected]
    output: str


@dataclass(frozen=True)
class Verified:
    """What the oracle found in one process's outputs of one workload.

    errors, mismatch: of calls with the workload's own values; varied: the first mismatch of those
    with each other family.
    """

    errors: tuple[OutputError, ...]
    mismatch: Mismatch | None
    varied: Mapping[Values, Mismatch] = field(default_factory=dict)


def larger_error(known: OutputError | None, new: OutputError) -> OutputError:
    """The larger of each measure of two errors of the same output."""
    if known is None:
        return new
    return OutputError(
        output=new.output,
        scaled=max(known.scaled, new.scaled),
        relative=max(known.relative, new.relative),
        absolute=_larger(known.absolute, new.absolute),
        pointwise=_larger(known.pointwise, new.pointwise),
    )


def _larger(known: float | None, new: float | None) -> float | None:
    return None if known is None or new is None else max(known, new)
