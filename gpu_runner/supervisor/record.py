"""Collects the facts of an evaluation and assembles its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpu_runner.data.archive import Loaded
from gpu_runner.data.environment import Environment, WorkSeen
from gpu_runner.data.evaluation import (
    BuildReport,
    EvaluationRequest,
    EvaluationResult,
    Mismatch,
    StageTime,
    WorkloadResult,
)
from gpu_runner.data.integrity import Audit, Check, Suspicion
from gpu_runner.data.profile import Profile
from gpu_runner.data.protocol import MARGINS, RESOLUTION_NS, WRITE_BACK_RATIO
from gpu_runner.data.scores import summary
from gpu_runner.data.symptom import GENERAL
from gpu_runner.data.task import KINDS_OF_VALUES, WAYS_TO_TRY, Values, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Mode, Verdict
from gpu_runner.supervisor.baselines import Baseline
from gpu_runner.supervisor.device.device import generous_peak
from gpu_runner.supervisor.device.floor import beats_physics, floor_suspicions
from gpu_runner.supervisor.device.statistics import ESTIMATORS
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.judge import (
    Facts,
    clock_suspicions,
    luck_suspicions,
    noise_of_unlisted,
    noisiest,
    workload_result,
)
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.collected import Collected, Verified, larger_error
from gpu_runner.supervisor.measure.outside import EmptyKernelTime, is_blind, unconfirmed
from gpu_runner.supervisor.runner.faults import Fault
from gpu_runner.supervisor.tools import peaks
from gpu_runner.supervisor.work.attribution import Worked
from gpu_runner.supervisor.work.told import work_suspicions


class Record:
    """Everything that an evaluation has found out so far."""

    def __init__(self, request: EvaluationRequest, config: SupervisorConfig) -> None:
        self.request, self.config = request, config
        self._facts: dict[str, Facts] = {}
        self._workloads: Sequence[Workload] = ()
        self.environment = Environment()
        self.build: BuildReport | None = None
        self.profile: Profile | None = None
        self.mismatch: Mismatch | None = None
        self.audit: Audit | None = None
        self.suspicions: list[Suspicion] = []
        self.loaded: tuple[Loaded, ...] = ()
        self.hints: list[Suspicion] = []  # of who does the work: suspicions, unless that is told
        self.work_is_told = False
        self.unconfirmed: tuple[Suspicion, ...] = ()  # a hint, where a score rests on the times
        self.pending_baselines: tuple[str, ...] = ()
        self.output_bytes: dict[str, float] = {}  # of a call, by workload, where it is known
        self.tensor_bytes: dict[str, float] = {}  # likewise, of inputs and outputs
        self.output = ""
        self.log = ""
        self.retryable = False

    def begin(self, workloads: Sequence[Workload]) -> None:
        """Name the workloads that are going to be measured."""
        self._workloads = workloads
        self._facts = {workload.name: Facts(self.config.kind) for workload in workloads}

    def know_sizes(self, bench: Bench) -> None:
        """Note what a call of each workload reads and writes."""
        task, direction = self.request.task, self.request.solution.direction
        for workload in self._workloads:
            sizes, cost = bench.sizes(workload), task.cost(workload, direction)
            self.output_bytes[workload.name] = sizes.outputs(cost.bytes if cost else None)
            self.tensor_bytes[workload.name] = float(sizes.tensors)

    def add(self, workload: Workload, collected: Collected, verified: Verified) -> None:
        """Add what one process returned for a workload, and what was found in it."""
        facts = self._facts[workload.name]
        facts.runs.append(collected.as_run(len(facts.runs)))
        for error in verified.errors:
            facts.errors[error.output] = larger_error(facts.errors.get(error.output), error)
        self.mismatch = self.mismatch or verified.mismatch

    def add_untimed(self, verified: Verified) -> None:
        """Add what was found in calls of a listed workload that were not timed."""
        self.mismatch = self.mismatch or verified.mismatch

    def add_baselines(self, workload: Workload, baselines: Mapping[str, Baseline]) -> None:
        """Add what is known of a workload's baselines."""
        known = baselines.items()
        measured = {name: b.measurement for name, b in known if b.measurement is not None}
        self._facts[workload.name].baselines = measured
        for name, baseline in known:
            if baseline.error:
                error = "failed" if workload.hidden else baseline.error  # a text could hold sizes
                errors = self.environment.baseline_errors
                errors = {**errors, f"{workload.name}: {name}": error}
                self.say(baseline_errors=errors)

    def noise(self) -> tuple[str, float]:
        """The listed workload with the widest interval, and half its relative width."""
        return noisiest(self.results(), RESOLUTION_NS[self.config.kind])

    def unlisted_noise(self) -> float:
        """Half the relative width of the interval that the mean over unlisted workloads has."""
        return noise_of_unlisted(self.results(), RESOLUTION_NS[self.config.kind])

    def impossible(self) -> str:
        """Why a claimed time cannot be true; empty if it can."""
        peak = generous_peak(self.config.kind, self.config.index)
        dtype = self.request.task.dtype
        return beats_physics(self.results(), peak, dtype, self.output_bytes) if peak else ""

    def look_at_times(self) -> None:
        """Say the device's limits; suspect times below them, claims, and times of few calls."""
        workloads = self.results()
        self.suspicions += clock_suspicions(workloads)
        is_scored = self.request.mode in (Mode.RANKED, Mode.AUDIT)
        if is_scored and (reason := unconfirmed(workloads)):
            self.unconfirmed = (Suspicion(check=Check.CLOCK, reason=reason),)
        if ESTIMATORS[self.config.kind].fastest:
            self.suspicions += luck_suspicions(workloads)
        self.say_peaks()
        dtype, limit = self.request.task.dtype, peaks.ceiling(self.config)
        if limit is not None:
            found = floor_suspicions(workloads, limit.peak, dtype, self.output_bytes)
            self.suspicions += found

    def say_peaks(self) -> None:
        """Say what the device can do, as far as it is known by now: a profile may measure it."""
        dtype = self.request.task.dtype
        self.say(peaks=peaks.facts(self.config, dtype, self.results()))

    def say(self, **facts: object) -> None:
        """Add facts of the environment, by its fields' names."""
        self.environment = replace(self.environment, **facts)  # type: ignore[arg-type]

    def wrong_result(self, mismatch: Mismatch) -> Fault:
        """The fault for a mismatch; a hidden workload is not named."""
        hidden = any(w.hidden for w in self._workloads if w.name == mismatch.workload)
        where = "a hidden workload" if hidden else mismatch.workload
        like = "".join(f": {finding.text}" for finding in mismatch.findings[:1])
        reason = f"{mismatch.output!r} is wrong on {where}: {mismatch.reason}{like}"
        return Fault(Verdict.WRONG_RESULT, reason)

    def result(self, fault: Fault, stages: tuple[StageTime, ...]) -> EvaluationResult:
        """The whole result; headline numbers only for CORRECT."""
        request = self.request
        workloads = self.results()
        headline = {}
        if fault.verdict is Verdict.CORRECT:
            headline = summary(workloads)
        return EvaluationResult(
            evaluation_id=request.evaluation_id,
            attempt=request.attempt,
            verdict=fault.verdict,
            reason=fault.reason,
            mode=request.mode,
            device=request.device,
            task=request.task.name,
            task_digest=request.task.digest(),
            solution_digest=request.solution.digest(),
            workloads=tuple(workloads),
            pending_baselines=self.pending_baselines,
            mismatch=self.mismatch,
            build=self.build,
            profile=self.profile,
            audit=self.audit,
            suspicions=tuple(self.suspicions + ([] if self.work_is_told else self.hints)),
            hints=tuple(self.hints if self.work_is_told else ()) + self.unconfirmed,
            stages=stages,
            loaded=self.loaded,
            environment=self.environment,
            output=self.output,
            log=self.log,
            retryable=self.retryable,
            **headline,
        )

    def know_empty(self, times: Mapping[str, EmptyKernelTime]) -> None:
        """Add what the supervisor's clock adds to each workload's bursts."""
        margin = MARGINS[self.config.kind, self.request.abi]
        if peak := generous_peak(self.config.kind, self.config.index):
            margin = replace(
                margin, drain_ns=WRITE_BACK_RATIO * peak.cache_bytes / peak.bytes_per_s * 1e9
            )
        for name, empty in times.items():
            self._facts[name].empty = empty
            self._facts[name].margin = margin

    def tell_work(self, worked: Worked) -> None:
        """Say who was seen at work, and suspect libraries that this task forbids."""
        self.work_is_told = True
        self.suspicions += work_suspicions(worked)
        told = worked.told()
        self.say(work=WorkSeen(own=told.own, libraries=dict(told.libraries), of=told.workload))

    def raised(self) -> set[str]:
        """Workloads of which the supervisor's own clock saw more than was claimed."""
        return {each.name for each in self.results() if each.claimed_ns is not None}

    def blind(self) -> set[str]:
        """Workloads of which the supervisor's own clock says too little to check a claim.

        Of Python or a torch extension on a CPU it never says much, and the result tells how much.
        """
        if (self.config.kind, self.request.abi) == (DeviceKind.CPU, Abi.TORCH):
            return set()
        found = set()
        for workload in self.results():
            margin = self._facts[workload.name].margin
            if margin and workload.outside and is_blind(workload.outside, margin):
                found.add(workload.name)
        return found

    def results(self) -> list[WorkloadResult]:
        """What is known of each workload by now."""
        limit = peaks.theoretical(self.config)
        peak = limit.peak if limit else None
        task, direction = self.request.task, self.request.solution.direction
        return [
            replace(
                workload_result(task, workload, direction, self._facts[workload.name], peak),
                tensor_bytes=self.tensor_bytes.get(workload.name),
            )
            for workload in self._workloads
        ]


def wrong_on_other_values(workload: str, found: Mapping[Values, Mismatch]) -> Fault:
    """The fault of a kernel that is right on the values that a listed workload is drawn with.

    It names the kinds of those on which it is not, what the first of them makes of the output, and
    how to try it, in words that tell of no value. Outputs that were kept look like anything.
    """
    if Values.NEAR in found:
        reason = (
            f"correct on {workload}, but wrong when the inputs are nearly the same as "
            "in the previous call. Does it cache results, or assume that values are at the same "
            f"addresses? To reproduce it, {WAYS_TO_TRY[Values.NEAR]}"
        )
        return Fault(Verdict.WRONG_RESULT, reason)
    kinds = [values for values in Values if values in found]
    first, words = kinds[0], [KINDS_OF_VALUES[each] for each in kinds]
    where = f"With {words[0]}, the" if len(kinds) > 1 else "The"
    like = "".join(
        f" {where} output looked like this: {_aside(GENERAL[each.symptom])}."
        for each in found[first].findings[:1]
    )
    reason = (
        f"correct on {workload} with the task's usual values,"
        f" but wrong with {_listed(words)}.{like}"
        f" To reproduce it, {WAYS_TO_TRY[first]}"
    )
    return Fault(Verdict.WRONG_RESULT, reason)


def _aside(text: str) -> str:
    """What follows a sentence's colon, in parentheses instead."""
    shown, _, more = text.partition(": ")
    return f"{shown} ({more})" if more else shown


def _listed(words: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
