"""What is checked of every call besides its values: returned tensors and guard bands."""

from __future__ import annotations

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Verdict
from gpu_runner.data.wire import Done, OutputRecord
from gpu_runner.supervisor.host.arena import GUARD_BYTES, Poison
from gpu_runner.supervisor.measure.layout import Layout
from gpu_runner.supervisor.oracle.client import Description, OutputSpec
from gpu_runner.supervisor.runner.faults import Fault, FaultError


def check_returned(done: Done, described: Description) -> None:
    """Number, dtype, shape and strides of the tensors that a torch extension returned."""
    if len(done.outputs) != len(described.outputs):
        reason = f"returned {len(done.outputs)} tensors, not {len(described.outputs)}"
        raise FaultError(Fault(Verdict.WRONG_SHAPE, reason))
    for actual, expected in zip(done.outputs, described.outputs, strict=True):
        _check_tensor(actual, expected)


def _check_tensor(actual: OutputRecord, expected: OutputSpec) -> None:
    name = expected.name
    if actual.dtype != expected.dtype:
        reason = f"{name} has dtype {actual.dtype}, not {expected.dtype}"
        raise FaultError(Fault(Verdict.WRONG_DTYPE, reason))
    if actual.shape != expected.shape:
        reason = f"{name} has shape {_shape(actual.shape)}, not {_shape(expected.shape)}"
        raise FaultError(Fault(Verdict.WRONG_SHAPE, reason))
    if actual.nbytes != expected.nbytes:
        reason = f"{name} has {actual.nbytes} bytes, not {expected.nbytes}"
        raise FaultError(Fault(Verdict.WRONG_SHAPE, reason))
    strides = zip(actual.shape, actual.strides, expected.strides, strict=True)
    if any(size > 1 and have != want for size, have, want in strides):
        reason = f"{name} has strides {_shape(actual.strides)}, not {_shape(expected.strides)}"
        raise FaultError(Fault(Verdict.WRONG_SHAPE, f"{reason}: return a contiguous tensor"))


def _shape(values: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"


def on_workload(workload: Workload) -> str:
    """The workload at the end of a reason; a hidden one is not named."""
    return "on a hidden workload" if workload.hidden else f"on {workload.name}"


def check_guards(outputs: memoryview, poison: Poison, layout: Layout, workload: Workload) -> None:
    """The random bits before and behind each output must be as they were."""
    for region, spec in zip(layout.outputs, layout.description.outputs, strict=True):
        before = region.offset - GUARD_BYTES, region.offset
        behind = region.end, region.end + GUARD_BYTES
        for side, band in (("before", before), ("behind", behind)):
            if not poison.intact(outputs, *band):
                place = f"{side} its output {spec.name!r} {on_workload(workload)}"
                reason = f"wrote out of bounds: {place}"
                raise FaultError(Fault(Verdict.VIOLATION, reason))
