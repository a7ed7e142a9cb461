"""Turns measured facts into numbers and a verdict; pure."""

from __future__ import annotations

import functools
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpu_runner.data.evaluation import Measurement, OutputError, ProcessRun, WorkloadResult
from gpu_runner.data.integrity import Check, OutsideTime, Suspicion
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.protocol import (
    BESIDE_NS,
    CLAIM_GAP,
    LUCKY_NS,
    LUCKY_PROCESSES,
    LUCKY_RATIO,
    WAITING_NS,
    Margin,
)
from gpu_runner.data.scores import speedups
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.device.device import Peak
from gpu_runner.supervisor.device.floor import floor_ns
from gpu_runner.supervisor.device.statistics import ESTIMATORS, Estimator, measure
from gpu_runner.supervisor.measure.outside import (
    EmptyKernelTime,
    Seen,
    at_least,
    host_share_ns,
    least_of_call,
    outside_time,
)


@dataclass
class Facts:
    """What is known of one workload: runs, largest errors by output, baselines by name.

    kind: of the device. empty, margin: what the outside clock must allow for.
    """

    kind: DeviceKind
    runs: list[ProcessRun] = field(default_factory=list)
    errors: dict[str, OutputError] = field(default_factory=dict)
    baselines: Mapping[str, Measurement] = field(default_factory=dict)
    empty: EmptyKernelTime | None = None
    margin: Margin | None = None

    @property
    def estimator(self) -> Estimator:
        """How its calls become a time."""
        return ESTIMATORS[self.kind]

    def counted(self) -> list[Sequence[float]]:
        """Of each run the times that count: claimed ones, or what the gate saw of a call at least.

        A host may take the supervisor's processor away, so that it sees an end too late: such a
        call counts as a slow one, and another is the fastest. What is claimed below what was seen
        gains nothing.
        """
        return [_counted(run, self.empty, self.margin) for run in self.runs]

    def claimed_ns(self) -> float:
        """The time that the claims alone would give."""
        return self.estimator([run.times_ns for run in self.runs])


def _counted(
    run: ProcessRun, empty: EmptyKernelTime | None, margin: Margin | None
) -> Sequence[float]:
    if empty is None or margin is None or not run.gate_ns:
        return run.times_ns
    calls = zip(run.times_ns, run.gate_ns, strict=True)
    return [max(claimed, least_of_call(gate, empty, margin)) for claimed, gate in calls]


def workload_result(
    task: Task, workload: Workload, direction: Direction, facts: Facts, peak: Peak | None
) -> WorkloadResult:
    """Time, interval, speedups and floor of one workload; the same facts give the same result."""
    times = tuple(map(tuple, facts.counted()))
    is_timed = bool(facts.runs) and workload.timed
    measurement = _measured(times, facts.estimator) if is_timed else None
    outside = _outside(facts) if is_timed else None
    if measurement and outside and facts.empty:
        share_ns = host_share_ns(_host_ns(facts), facts.empty, outside)
        measurement = at_least(measurement, outside, share_ns)
    cost = task.cost(workload, direction)
    return WorkloadResult(
        name=workload.name,
        parameters=workload.parameters,
        hidden=workload.hidden,
        measurement=measurement,
        processes=tuple(facts.runs),
        errors=tuple(facts.errors.values()),
        baselines=facts.baselines,
        speedups=speedups(measurement, facts.baselines),
        flops=cost.flops if cost else None,
        bytes=cost.bytes if cost else None,
        weight=cost.weight if cost and cost.weight > 0 else 1.0,
        floor_ns=floor_ns(cost, peak, task.dtype) if cost and peak else None,
        outside=outside,
        claimed_ns=_claimed(facts, measurement),
    )


@functools.lru_cache(maxsize=256)
def _measured(processes: tuple[tuple[float, ...], ...], estimator: Estimator) -> Measurement:
    """As `measure`. An evaluation asks for its results some times, and resampling takes 17 ms."""
    return measure(processes, estimator, random.Random(0))  # noqa: S311 - resampling, no secret


def _claimed(facts: Facts, measurement: Measurement | None) -> float | None:
    """The claim, where the supervisor saw more."""
    claimed_ns = facts.claimed_ns() if measurement else 0.0
    return claimed_ns if measurement and measurement.time_ns > claimed_ns else None


def _host_ns(facts: Facts) -> float:
    return statistics.median(run.host_ns for run in facts.runs)


def _outside(facts: Facts) -> OutsideTime | None:
    """What the supervisor's clock says, from the same processes and calls as the claim.

    Another choice could contradict it.
    """
    runs, estimator = facts.runs, facts.estimator
    if not runs or facts.empty is None or facts.margin is None:
        return None

    def least(of_runs: Sequence[Sequence[float]]) -> float | None:
        if not all(of_runs):  # the claim is of all processes; this clock says nothing of one
            return None
        return estimator.of_all([estimator.held(calls) for calls in of_runs])

    seen = Seen(
        held_ns=least([run.held_ns for run in runs]),
        gate_ns=least([run.gate_ns for run in runs]),
        bursts=[burst for run in runs for burst in run.bursts],
        host_ns=_host_ns(facts),
    )
    return outside_time(facts.kind, seen, facts.empty, facts.margin)


def luck_suspicions(workloads: Sequence[WorkloadResult]) -> list[Suspicion]:
    """Workloads whose fastest calls, which count on a CPU, say little of the others.

    Neighbours on the same core make calls slower by 30 to 60 %; a kernel that guesses and is
    seldom right at once, or that rests between its good calls, differs by more in every process.
    Of times that are claimed, only the fastest must be true, so processor time is looked at, too.
    A process may spin while the supervisor waits for a processor: that is no luck.
    """
    found = []
    for workload in workloads:
        if len(workload.processes) < LUCKY_PROCESSES:  # one bad moment of the host accuses nobody
            continue
        if sum(map(_is_lucky, workload.processes)) > len(workload.processes) / 2:
            ratio = f"more than {LUCKY_RATIO:g} times as long as the fastest"
            reason = f"nine out of ten calls on {_named(workload)} take {ratio}"
            found.append(Suspicion(check=Check.LUCK, reason=reason))
    return found


def _named(workload: WorkloadResult) -> str:
    return "a hidden workload" if workload.hidden else workload.name


def _is_lucky(run: ProcessRun) -> bool:
    seen = sorted(_seen(run))
    return _tenth(seen) > max(LUCKY_RATIO * seen[0], seen[0] + LUCKY_NS)


def _seen(run: ProcessRun) -> list[float]:
    """Of each call the claim, or by how much its processor time exceeds the least, if larger."""
    if not run.held_ns:
        return list(run.times_ns)
    beside_ns = min(run.held_ns) - min(run.times_ns) + BESIDE_NS
    calls = zip(run.times_ns, _needed(run), strict=True)
    return [max(time_ns, needed_ns - beside_ns) for time_ns, needed_ns in calls]


def _needed(run: ProcessRun) -> list[float]:
    """The processor time of each call, less what it may have spun while the supervisor waited."""
    late = run.late_ns or [0] * len(run.held_ns)  # results of before have none
    return [held_ns - late_ns for held_ns, late_ns in zip(run.held_ns, late, strict=True)]


def clock_suspicions(workloads: Sequence[WorkloadResult]) -> list[Suspicion]:
    """Workloads whose claims are far below what the supervisor's own clock saw.

    Not where threads that only waited may explain it: a team of many more threads than processors
    costs processor time beside its kernel, and one that spins costs it until the supervisor has
    stopped it, which others may delay. Nor where a host may that is slow to queue what a call
    launches, or that kept the process from its processor: its time was raised, so that who lies
    about the host gains nothing.
    """
    found = []
    for workload in workloads:
        claimed_ns, measured = workload.claimed_ns, workload.measurement
        if claimed_ns is None or measured is None:
            continue
        if measured.time_ns - _elsewhere_ns(workload) <= CLAIM_GAP * claimed_ns + LUCKY_NS:
            continue
        reason = (
            f"claims {duration_text(claimed_ns)} on {workload.name}, but the supervisor's own clock"
            f" saw {duration_text(measured.time_ns)} per call"
        )
        if workload.hidden:  # a claim is a kernel's to choose: its digits would tell of sizes
            reason = (
                "claims a far shorter time on a hidden workload than the supervisor's own clock saw"
            )
        found.append(Suspicion(check=Check.CLOCK, reason=reason))
    return found


def _elsewhere_ns(workload: WorkloadResult) -> float:
    """What of a call's time may have been its host's queue, or threads that only waited."""
    if queued_ns := statistics.median(run.host_ns for run in workload.processes):
        return queued_ns
    outside = workload.outside
    if outside is None or outside.cpu_ns is None:
        return 0.0
    if outside.bound_ns != outside.cpu_ns:
        return max(map(_kept_ns, workload.processes))
    waiting_ns = WAITING_NS * max(run.threads for run in workload.processes)
    return waiting_ns + max(min(run.held_ns) - min(_needed(run)) for run in workload.processes)


def _kept_ns(run: ProcessRun) -> float:
    """How long others kept a process or the supervisor waiting in the call that counts.

    That is the call that passed the gate soonest. More than its claim lacks explains nothing.
    """
    calls = zip(run.gate_ns, run.times_ns, run.kept_ns, run.late_ns, strict=False)
    waits = ((gate, min(kept + late, gate - time)) for gate, time, kept, late in calls)
    return min(waits, default=(0.0, 0.0))[1]


def _tenth(ordered: Sequence[float]) -> float:
    """The lower decile, of few times the second."""
    return ordered[min(max(len(ordered) // 10, 1), len(ordered) - 1)]


def noisiest(workloads: Sequence[WorkloadResult], resolution_ns: float) -> tuple[str, float]:
    """Name and noise of the listed workload with the widest interval."""
    public = [w for w in workloads if not w.hidden]
    noise = [(w.measurement.noise(resolution_ns), w.name) for w in public if w.measurement]
    width, name = max(noise)
    return name, width


def noise_of_unlisted(workloads: Sequence[WorkloadResult], resolution_ns: float) -> float:
    """Relative half-width of the interval of the geometric mean over unlisted workloads."""
    noise = [w.measurement.noise(resolution_ns) for w in workloads if w.measurement and w.hidden]
    return math.hypot(*noise) / len(noise) if noise else 0.0
