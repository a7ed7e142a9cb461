"""The expert's brief: what prompts tell of the device, the bound and the known times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpu_runner.data.environment import Environment
from gpu_runner.data.task import KINDS_OF_VALUES, VERIFIER, Cost, Task, Values, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from runs_app.core.profile.hardware import (
    bytes_per_s,
    compiler_of,
    hardware_lines,
    measured_rates,
    processors_of,
)
from runs_app.optimiser.evolve.config import (
    BY_ARITHMETIC,
    BY_MEMORY,
    BY_TENSORS,
    Briefing,
    KnownTimes,
)

_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_MEASURED = (
    "estimates: the bytes that must move, or the operations, at the rates that simple loops reach"
    " on this host; a good kernel may be faster"
)
_THEORETICAL = "at the device's peak rates, with each input read and each output written once"
_MOVED = (
    "estimates: each input read and each output written once, at memory bandwidth, because the"
    " task has no work formula; a kernel that needs only a part of an input may be faster"
)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What results hold: times in nanoseconds, and the environment of the newest.

    means_ns, floor_ns: over all listed workloads. The others are by workload; tensor_bytes are
    those of a call's inputs and outputs.
    """

    environment: Environment = field(default_factory=Environment)
    means_ns: Mapping[str, float] = field(default_factory=dict)
    floor_ns: float | None = None
    baselines_ns: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    floors_ns: Mapping[str, float] = field(default_factory=dict)
    tensor_bytes: Mapping[str, float] = field(default_factory=dict)


def briefing(task: Task, kind: DeviceKind, direction: Direction, figures: Figures) -> Briefing:
    """What prompts tell, from figures."""
    workloads = task.workloads_for(kind, direction, hidden=False)
    limits, source = _limits(task, direction, workloads, figures)
    environment, unknown = figures.environment, (None, "")
    return Briefing(
        baselines_ns=figures.means_ns,
        floor_ns=figures.floor_ns,
        known=tuple(
            KnownTimes(
                workload=workload.name,
                baselines_ns=figures.baselines_ns.get(workload.name, {}),
                limit_ns=limits.get(workload.name, unknown)[0],
                limit_by=limits.get(workload.name, unknown)[1],
            )
            for workload in workloads
        ),
        limit_source=source if limits else "",
        hardware=hardware_lines(environment),
        processors=processors_of(environment),
        compiler=compiler_of(environment),
        call_limit_s=environment.hardware.call_timeout_s if environment.hardware else None,
    )


def _limits(
    task: Task, direction: Direction, workloads: Sequence[Workload], figures: Figures
) -> tuple[dict[str, tuple[float, str]], str]:
    """By workload: the physical limit in nanoseconds, else an estimate and what it comes from."""
    names = {workload.name for workload in workloads}
    costs = {workload.name: task.cost(workload, direction) for workload in workloads}
    floors = figures.floors_ns.items()
    known = {n: (t, _binds(costs[n], t, figures.environment)) for n, t in floors if n in names}
    if known:
        return known, _THEORETICAL
    if not any(costs.values()):
        return _moved(figures, names), _MOVED
    rates = measured_rates(figures.environment)
    if rates is None:
        return {}, ""
    moved, computed = rates
    return {
        name: max(
            (cost.bytes / moved * 1e9, BY_MEMORY), (cost.flops / computed * 1e9, BY_ARITHMETIC)
        )
        for name, cost in costs.items()
        if cost is not None
    }, _MEASURED


def _binds(cost: Cost | None, floor_ns: float, environment: Environment) -> str:
    """What a physical limit comes from; empty where that is not known."""
    rate = environment.hardware and environment.hardware.bytes_per_s
    if cost is None or not rate:
        return ""
    return BY_MEMORY if cost.bytes / rate * 1e9 > 0.99 * floor_ns else BY_ARITHMETIC


def _moved(figures: Figures, names: set[str]) -> dict[str, tuple[float, str]]:
    """What it takes to move each workload's tensors once, where sizes and rate are known."""
    rate = bytes_per_s(figures.environment)
    sizes = figures.tensor_bytes.items() if rate else ()
    return {name: (size / rate * 1e9, BY_TENSORS) for name, size in sizes if name in names}


def values_text(task: Task, kind: DeviceKind, direction: Direction) -> str:
    """Which other values kernels are tested with, as a sentence; empty where there are none."""
    public = task.workloads_for(kind, direction, hidden=False)
    found = {values for w in public for values in task.other_values(w, kind, direction)}
    found -= {workload.values for workload in public}
    words = [KINDS_OF_VALUES[values] for values in Values if values in found]
    return f" Other values are: {'; '.join(words)}." if words else ""


def tolerance_text(task: Task, workloads: Sequence[Workload], direction: Direction) -> str:
    """The bound on an element's error in numbers; the reference has the scale where it has one."""
    if task.has_verifier:
        return f"`{VERIFIER}` in the reference decides whether outputs are correct."
    bound, eps = task.tolerance, _EPS.get(task.dtype, _EPS["float32"])
    scale = f"{direction.value}_scale"
    has_own = any(f"def {scale}(" in text for text in task.files.values())
    lengths = [task.reduction_length(workload) for workload in workloads]
    factors = [eps * (bound.constant + bound.growth * length**0.5) for length in lengths]
    low, high = min(factors), max(factors)
    numbers = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    what = f"what the reference's `{scale}` returns" if has_own else "|expected| + rms(expected)"
    length = f"L = {bound.reduction}"
    if bound.reduction.isdecimal():
        length += " for every size"
    else:
        length += ", the number of terms summed per element"
    return (
        f"An output element passes if |actual - expected| <= {eps:.3g} * ({bound.constant:g} +"
        f" {bound.growth:g} * sqrt(L)) * scale. {length}, and scale is {what}. On the workloads"
        f" below that is {numbers} times the scale."
    )
