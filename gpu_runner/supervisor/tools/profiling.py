"""Profiles one workload of a kernel that was found to be right: with ncu, or without.

Without it, times say how far from the peaks it is, and the assembler how full the device can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_runner.data.evaluation import BuildReport, EvaluationRequest, WorkloadResult
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.profile import THROUGHPUTS, KernelMetrics, KernelResources, Profile
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Language, Verdict
from gpu_runner.supervisor.build import vectorization
from gpu_runner.supervisor.build.build import solution_recipes
from gpu_runner.supervisor.device.device import Peak, cuda_architecture
from gpu_runner.supervisor.device.environment import SM
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.processors import measured_cpus
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import ncu
from gpu_runner.supervisor.tools.experiments import Laboratory, thread_cause
from gpu_runner.supervisor.tools.ncu import Launch
from gpu_runner.supervisor.tools.peaks import device_peak

_FLAT, _PROPORTIONAL = 0.25, 0.75
_FASTER = 1.4  # chosen: far from 1 and from 2
ASSUMED_BLOCK_THREADS = 256  # chosen: what kernels use most
NOTE = (
    f"occupancy is an estimate for blocks of {ASSUMED_BLOCK_THREADS} threads without dynamic"
    " shared memory: the block size is not known without a profiler"
)

_WARP = 32  # CUDA C++ Programming Guide, as all of these: compute capabilities
_REGISTERS_PER_SM = 65536  # of all from 7.0 on
_REGISTERS_STEP = 256  # registers are given to a warp in such steps
_MOST_BLOCKS_PER_SM = 32  # of the largest; fewer on small GPUs
_UNKNOWN_SM = (0, 0, 0, 2048)  # as most have: threads; and no limit of shared memory


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
        """Profile the largest listed workload. Raises what a broken host raises, never a fault."""
        workloads = {w.name: w for w in self._request.task.workloads}
        timed = [
            self._timed(workloads[result.name], result)
            for result in results
            if result.measurement is not None and not result.hidden
        ]
        chosen = largest(timed)
        moved = max(one.bytes / (one.latency_ns / 1e9) for one in timed)
        known = device_peak(self._config, moved)
        dtype = self._request.task.dtype
        metrics = roofline_metrics(chosen, known.peak, dtype)
        exponent = scaling(timed)
        if exponent is not None:
            metrics["latency_scaling_exponent"] = exponent
        notes = [*roofline_notes(timed, known.peak, dtype), f"peaks: {known.source}"]
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
        kernels = estimates(resources, cuda_architecture(self._config.index))
        if kernels:
            notes.append(NOTE)
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
            notes.append("g++ reported nothing about loops")
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
    launches = ncu.complete(ncu.parse(report))
    if launches:
        return _Counted(launches)
    return _Counted((), ncu.complaint(report, printed) or fault or ncu.SAW_NOTHING)


def _with_ncu(
    chosen: Timed, metrics: dict[str, float], launches: Sequence[Launch], notes: list[str]
) -> Profile:
    counted = ncu.total(launches)
    capped = {name: min(100.0, max(0.0, counted[name])) for name in THROUGHPUTS}
    if len(launches) >= ncu.LAUNCHES_LIMIT:
        notes.append(f"only the first {ncu.LAUNCHES_LIMIT} kernels of the call were profiled")
    return Profile(
        tool="ncu",
        reason="",
        workload=chosen.name,
        metrics={**metrics, **counted, **capped},
        kernels=ncu.kernels(launches),
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


@dataclass(frozen=True)
class Timed:
    """One measured workload: its time, and what it has to move and to compute."""

    name: str
    latency_ns: float
    bytes: float  # that a call moves
    flops: float  # operations of a call


def largest(timed: Sequence[Timed]) -> Timed:
    """The workload with the most operations, of several the one with the most bytes."""
    return max(timed, key=lambda one: (one.flops, one.bytes))


def roofline_metrics(one: Timed, peak: Peak, dtype: str) -> dict[str, float]:
    """Achieved rates, peaks and intensities; percentages are capped at 100.

    No counter is read: memory throughput counts the compulsory bytes only, so it stands for DRAM.
    """
    seconds = one.latency_ns / 1e9
    moved, computed, rate = one.bytes / seconds, one.flops / seconds, peak_rate(peak, dtype)
    memory = min(100.0, 100 * moved / peak.bytes_per_s)
    return {
        "compute_throughput_pct": min(100.0, 100 * computed / rate),
        "dram_throughput_pct": memory,
        "memory_throughput_pct": memory,
        "latency_ns": one.latency_ns,
        "achieved_bytes_per_s": moved,
        "achieved_flop_per_s": computed,
        "peak_bytes_per_s": peak.bytes_per_s,
        "peak_flop_per_s": rate,
        "arithmetic_intensity_flop_per_byte": one.flops / one.bytes if one.bytes else 0.0,
        "ridge_intensity_flop_per_byte": rate / peak.bytes_per_s,
    }


def peak_rate(peak: Peak, dtype: str) -> float:
    """FLOP/s in a dtype; float32's where the dtype's own is not known."""
    return peak.flops.get(dtype, peak.flops["float32"])


def scaling(timed: Sequence[Timed]) -> float | None:
    """How the time grows with the bytes from the smallest workload to the largest.

    The exponent: 1 is proportional, 0 a fixed cost. None where all are about the same size.
    """
    low = min(timed, key=lambda one: one.bytes)
    high = max(timed, key=lambda one: one.bytes)
    if low.bytes <= 0 or high.bytes < 2 * low.bytes:
        return None
    return math.log(high.latency_ns / low.latency_ns) / math.log(high.bytes / low.bytes)


def roofline_notes(timed: Sequence[Timed], peak: Peak, dtype: str) -> list[str]:
    """A sentence for each workload, and one on how times scale."""
    lines = []
    for one in timed:
        found = roofline_metrics(one, peak, dtype)
        lines.append(
            f"{one.name}: {duration_text(one.latency_ns)}, {found['dram_throughput_pct']:.2g} % of"
            f" the peak bandwidth, {found['compute_throughput_pct']:.2g} % of the peak arithmetic"
        )
    exponent = scaling(timed)
    if exponent is not None and exponent < _FLAT:
        lines.append("times hardly grow with the size, so a fixed cost dominates")
    elif exponent is not None and exponent > _PROPORTIONAL:
        lines.append(_growth(timed, exponent))
    return lines


def _growth(timed: Sequence[Timed], exponent: float) -> str:
    """How much faster than the work of the task the times grow, if they clearly do."""
    low, high = (choose(timed, key=lambda one: one.bytes) for choose in (min, max))
    work = max(high.bytes / low.bytes, high.flops / low.flops if low.flops > 0 else 0.0)
    power = math.log(high.latency_ns / low.latency_ns) / math.log(work)
    if power < _FASTER:
        return "times grow about as fast as the task's work, or more slowly"
    return (
        f"times grow faster than the task's work, as its power of {power:.2g} from {low.name} to"
        f" {high.name}: is there a loop over everything inside another loop, or does the data no"
        " longer fit in the cache?"
    )


def estimates(
    resources: tuple[KernelResources, ...], architecture: str
) -> tuple[KernelMetrics, ...]:
    """What each kernel takes, and its estimated occupancy in percent."""
    return tuple(
        KernelMetrics(
            name=kernel.name,
            metrics={
                "registers_per_thread": float(kernel.registers),
                "static_shared_bytes_per_block": float(kernel.shared_bytes),
                "spill_store_bytes": float(kernel.spill_store_bytes),
                "spill_load_bytes": float(kernel.spill_load_bytes),
                "estimated_occupancy_pct": occupancy_pct(kernel, architecture),
            },
        )
        for kernel in resources
    )


def occupancy_pct(kernel: KernelResources, architecture: str) -> float:
    """Resident warps over the most that a multiprocessor holds, in percent."""
    digits = architecture.removeprefix("sm_").rstrip("a")  # see `toolchain.architecture`
    _, shared_kib, _, threads = SM.get((int(digits[:-1]), int(digits[-1])), _UNKNOWN_SM)
    most = threads // _WARP
    warps = ASSUMED_BLOCK_THREADS // _WARP
    per_warp = -(-max(kernel.registers, 1) * _WARP // _REGISTERS_STEP) * _REGISTERS_STEP
    blocks = min(_REGISTERS_PER_SM // per_warp // warps, most // warps, _MOST_BLOCKS_PER_SM)
    if shared_kib and kernel.shared_bytes:
        blocks = min(blocks, (shared_kib << 10) // kernel.shared_bytes)
    return 100.0 * blocks * warps / most
