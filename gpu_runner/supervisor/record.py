"""Collects the facts of an evaluation and assembles its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_runner.data.evaluation import (
    BuildReport,
    EvaluationRequest,
    EvaluationResult,
    Mismatch,
    StageTime,
    WorkloadResult,
)
from gpu_runner.data.profile import Profile
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.baselines import Baseline
from gpu_runner.supervisor.bench import Checked, Collected, larger_error
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.device import PEAKS, device_name, generous_peak
from gpu_runner.supervisor.judge import Facts, beats_physics, noisiest, summary, workload_result
from gpu_runner.supervisor.session import Fault


class Record:
    """Everything that an evaluation has found out so far."""

    def __init__(self, request: EvaluationRequest, config: SupervisorConfig) -> None:
        """Nothing is known yet."""
        self._request, self._config = request, config
        self._facts: dict[str, Facts] = {}
        self._workloads: Sequence[Workload] = ()
        self.environment: dict[str, Any] = {}
        self.build: BuildReport | None = None
        self.profile: Profile | None = None
        self.mismatch: Mismatch | None = None
        self.output = ""
        self.log = ""

    def begin(self, workloads: Sequence[Workload]) -> None:
        """Name the workloads that are going to be measured."""
        self._workloads = workloads
        self._facts = {workload.name: Facts() for workload in workloads}

    def add(self, workload: Workload, process: int, collected: Collected, checked: Checked) -> None:
        """Add what one process returned for a workload, and what was found in it."""
        facts = self._facts[workload.name]
        facts.runs.append(collected.as_run(process))
        for error in checked.errors:
            facts.errors[error.output] = larger_error(facts.errors.get(error.output), error)
        self.mismatch = self.mismatch or checked.mismatch

    def add_baselines(self, workload: Workload, baselines: Mapping[str, Baseline]) -> None:
        """Add what is known of a workload's baselines."""
        known = baselines.items()
        measured = {name: b.measurement for name, b in known if b.measurement is not None}
        self._facts[workload.name].baselines = measured
        for name, baseline in known:
            if baseline.error:
                errors = self.environment.setdefault("baseline_errors", {})
                errors[f"{workload.name}: {name}"] = baseline.error

    def noise(self) -> tuple[str, float]:
        """The public workload with the widest interval, and half its relative width."""
        return noisiest(self.results())

    def impossible(self) -> str:
        """Why a claimed time cannot be true; empty if it can."""
        peak = generous_peak(self._config.kind, self._config.index)
        return beats_physics(self.results(), peak, self._request.task.dtype) if peak else ""

    def wrong_result(self, mismatch: Mismatch) -> Fault:
        """The fault for a mismatch; a hidden workload is not named."""
        hidden = any(w.hidden for w in self._workloads if w.name == mismatch.workload)
        where = "a hidden workload" if hidden else mismatch.workload
        reason = f"{mismatch.output!r} is wrong on {where}: {mismatch.reason}"
        return Fault(Verdict.WRONG_RESULT, reason)

    def result(self, fault: Fault, stages: tuple[StageTime, ...]) -> EvaluationResult:
        """The whole result; headline numbers only for CORRECT."""
        request = self._request
        workloads = self.results()
        headline = summary(workloads) if fault.verdict is Verdict.CORRECT else {}
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
            mismatch=self.mismatch,
            build=self.build,
            profile=self.profile,
            stages=stages,
            environment=self.environment,
            output=self.output,
            log=self.log,
            **headline,
        )

    def results(self) -> list[WorkloadResult]:
        """What is known of each workload by now."""
        kind, index = self._config.kind, self._config.index
        peak = PEAKS.get(device_name(kind, index)) if kind is DeviceKind.CUDA else None
        task, direction = self._request.task, self._request.solution.direction
        return [
            workload_result(task, workload, direction, self._facts[workload.name], peak)
            for workload in self._workloads
        ]
