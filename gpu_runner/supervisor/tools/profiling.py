"""Profiles one workload of a kernel that was found to be right: with ncu, or without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_runner.data.evaluation import BuildReport, EvaluationRequest, WorkloadResult
from gpu_runner.data.profile import THROUGHPUTS, KernelMetrics, Profile
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Language, Verdict
from gpu_runner.supervisor.build import vectorization
from gpu_runner.supervisor.build.build import solution_recipes
from gpu_runner.supervisor.device import occupancy
from gpu_runner.supervisor.device.device import cuda_architecture
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.processors import measured_cpus
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import ncu, ncu_report, roofline
from gpu_runner.supervisor.tools.experiments import Laboratory, thread_cause
from gpu_runner.supervisor.tools.ncu_report import Launch
from gpu_runner.supervisor.tools.peaks import device_peak
from gpu_runner.supervisor.tools.roofline import Timed


@dataclass(frozen=True)
class _Counted:
    """What ncu saw, or why it saw nothing."""

    launches: Sequence[Launch]
    reason: str = ""


class Profiler:
    """Looks once more at a measured kernel; nothing that it finds is judged."""

    def __init__(
        self, request: EvaluationRequest, config: SupervisorConfig, bench: Bench, target: Target
    ) -> None:
        """`bench` is prepared, and the device held."""
        self._request, self._config = request, config
        self._bench, self._target = bench, target

    def profile(self, results: Sequence[WorkloadResult], build: BuildReport | None) -> Profile:
        """Profile the largest public workload. Raises what a broken host raises, never a fault."""
        workloads = {w.name: w for w in self._request.task.workloads}
        timed = [
            self._timed(workloads[result.name], result)
            for result in results
            if result.measurement is not None and not result.hidden
        ]
        chosen = roofline.largest(timed)
        moved = max(one.bytes / (one.latency_ns / 1e9) for one in timed)
        known = device_peak(self._config, moved)
        dtype = self._request.task.dtype
        metrics = roofline.metrics(chosen, known.peak, dtype)
        exponent = roofline.scaling(timed)
        if exponent is not None:
            metrics["latency_scaling_exponent"] = exponent
        notes = [*roofline.notes(timed, known.peak, dtype), f"peaks: {known.source}"]
        if dtype not in known.peak.flops:
            notes.append(f"the peak rate for {dtype} is unknown, so float32's is used")
        if any(result.name == chosen.name and result.flops is None for result in results):
            notes.append(
                "the task has no work formula, so its operations are unknown and count as 0"
            )
        if self._config.kind is DeviceKind.CPU:
            metrics.update(self._vectorized(notes))
            reason = "ncu is for CUDA devices"
            found = _portable(reason, chosen, metrics, (), notes)
            causes = tuple(self._causes(workloads[chosen.name], chosen.latency_ns, results))
            return replace(found, causes=causes)
        counted = self._count(workloads[chosen.name])
        if counted.launches:
            return _with_ncu(chosen, metrics, counted.launches, notes)
        resources = build.resources if build else ()
        kernels = occupancy.estimates(resources, cuda_architecture(self._config.index))
        if kernels:
            notes.append(occupancy.NOTE)
        return _portable(counted.reason, chosen, metrics, kernels, notes)

    def _causes(
        self, workload: Workload, latency_ns: float, results: Sequence[WorkloadResult]
    ) -> Iterator[str]:
        is_bare = self._request.abi is Abi.C and not self._config.allow_unjailed
        if is_bare and (words := thread_cause(results, len(measured_cpus()))):
            yield words
        laboratory = Laboratory(self._request, self._config, self._bench, self._target)
        yield from laboratory.causes(workload, latency_ns)

    def _timed(self, workload: Workload, result: WorkloadResult) -> Timed:
        assert result.measurement is not None
        moved = result.bytes or float(self._bench.sizes(workload).tensors)
        return Timed(result.name, result.measurement.time_ns, moved, result.flops or 0.0)

    def _count(self, workload: Workload) -> _Counted:
        path = ncu.find()
        if not path:
            return _Counted((), "ncu is not installed")
        return count(path, self._bench, self._target, workload)

    def _vectorized(self, notes: list[str]) -> dict[str, float]:
        if self._request.solution.language is Language.PYTHON:
            notes.append("no compiler reports which loops of a Python module are vectorized")
            return {}
        if vectorization.is_by_hand(self._request.solution.whole):
            notes.append(
                "its loops contain hand-written vector code, which g++'s report doesn't count"
            )
            return {}
        recipes = solution_recipes(self._request, self._config)
        looks = (vectorization.look(recipe, self._config) for recipe in recipes)
        found = next(filter(None, looks), None)
        if found is None:
            notes.append("g++ said nothing about loops")
            return {}
        notes += found.notes()
        return found.metrics()


def count(path: str, bench: Bench, target: Target, workload: Workload) -> _Counted:
    """Run ncu; whatever goes wrong, the kernel's fault or ncu's, becomes a reason."""
    with ncu.Ncu(path) as profiler:
        fault = ""
        try:
            printed = bench.run_profiled(target, [workload], profiler)
        except FaultError as error:
            fault, printed = str(error), error.output
            if error.fault.verdict is Verdict.TIME_LIMIT:
                fault = "ncu took too long: it repeats each kernel for every group of counters"
        report = profiler.report()
    launches = ncu_report.complete(ncu_report.parse(report))
    if launches:
        return _Counted(launches)
    return _Counted((), ncu.complaint(report, printed) or fault or ncu.SAW_NOTHING)


def _with_ncu(
    chosen: Timed, metrics: dict[str, float], launches: Sequence[Launch], notes: list[str]
) -> Profile:
    counted = ncu_report.total(launches)
    capped = {name: min(100.0, max(0.0, counted[name])) for name in THROUGHPUTS}
    if len(launches) >= ncu.LAUNCHES_LIMIT:
        notes.append(f"only the first {ncu.LAUNCHES_LIMIT} kernels of the call were profiled")
    return Profile(
        tool="ncu",
        reason="",
        workload=chosen.name,
        metrics={**metrics, **counted, **capped},
        kernels=ncu_report.kernels(launches),
        notes=tuple(notes),
    )


def _portable(
    reason: str,
    chosen: Timed,
    metrics: dict[str, float],
    kernels: tuple[KernelMetrics, ...],
    notes: list[str],
) -> Profile:
    return Profile(
        tool="portable",
        reason=reason,
        workload=chosen.name,
        metrics=metrics,
        kernels=kernels,
        notes=tuple(notes),
    )
