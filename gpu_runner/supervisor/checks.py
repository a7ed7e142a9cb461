"""What is checked of every call besides its values: returned tensors, guard bands, inputs."""

from __future__ import annotations

from gpu_runner.data.verdict import Verdict
from gpu_runner.data.wire import Done, OutputRecord
from gpu_runner.supervisor.arena import GUARD_BYTES, Poison, Region
from gpu_runner.supervisor.layout import Layout
from gpu_runner.supervisor.oracle import Description, OutputSpec
from gpu_runner.supervisor.session import Fault, FaultError

_COMPARE_BYTES = 16 << 20


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
    strides = zip(actual.shape, actual.strides, expected.strides, strict=True)
    if any(size > 1 and have != want for size, have, want in strides):
        reason = f"{name} has strides {_shape(actual.strides)}, not {_shape(expected.strides)}"
        raise FaultError(Fault(Verdict.WRONG_SHAPE, f"{reason}: return a contiguous tensor"))


def _shape(values: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"


def check_guards(outputs: memoryview, poison: Poison, layout: Layout) -> None:
    """The random bits before and behind each output must be as they were."""
    for region, spec in zip(layout.outputs, layout.description.outputs, strict=True):
        before = region.offset - GUARD_BYTES, region.offset
        behind = region.end, region.end + GUARD_BYTES
        for where, band in (("before", before), ("behind", behind)):
            if not poison.intact(outputs, *band):
                reason = f"wrote out of bounds: {where} its output {spec.name!r}"
                raise FaultError(Fault(Verdict.VIOLATION, reason))


def check_inputs(inputs: memoryview, echo: memoryview, layout: Layout) -> None:
    """The inputs as they were after the call must be those that were handed over."""
    tensors = layout.description.tensors()
    for region, tensor in zip(layout.inputs, tensors, strict=True):
        if tensor["kind"] == "tensor" and not _same(inputs, echo, region):
            reason = f"changed its input {tensor['name']!r}: inputs must not be changed"
            raise FaultError(Fault(Verdict.VIOLATION, reason))


def _same(inputs: memoryview, echo: memoryview, region: Region) -> bool:
    stops = (min(at + _COMPARE_BYTES, region.end) for at in _steps(region))
    return all(
        bytes(inputs[at:stop]) == bytes(echo[at:stop])
        for at, stop in zip(_steps(region), stops, strict=True)
    )


def _steps(region: Region) -> range:
    return range(region.offset, region.end, _COMPARE_BYTES)
