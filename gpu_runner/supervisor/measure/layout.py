"""Places a call's tensors in the arenas, and encodes its arguments for the wire."""

from __future__ import annotations

import mmap
import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_runner.data import wire
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.host.arena import ALIGNMENT, Region, extent, place, span_bytes
from gpu_runner.supervisor.oracle.client import Description

_FORMATS = {
    "float32": "<f", "float64": "<d", "float16": "<e", "int8": "<b", "uint8": "<B", "int16": "<h",
    "int32": "<i", "int64": "<q", "bool": "<?",
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """Where one call's tensors lie; drawn anew for every call."""

    description: Description
    inputs: tuple[Region, ...]  # one for each drawn tensor
    outputs: tuple[Region, ...]  # one for each output

    @classmethod
    def draw(cls, description: Description, rng: random.Random, calls: int = 1) -> list[Layout]:
        """Regions at random shifts, apart from each other, for calls that are made together."""
        sizes = _input_sizes(description)
        outputs = [output.nbytes for output in description.outputs]
        read, written = place(sizes * calls, rng), place(outputs * calls, rng)
        return [
            cls(
                description,
                tuple(read[index * len(sizes) : (index + 1) * len(sizes)]),
                tuple(written[index * len(outputs) : (index + 1) * len(outputs)]),
            )
            for index in range(calls)
        ]

    def call(self, call_id: int, setup: int) -> wire.Call:
        """The CALL frame's content."""
        arguments = _Arguments(self).encoded()
        return wire.Call(
            call_id=call_id,
            arguments=tuple(arguments),
            inputs_low=extent(self.inputs)[0],
            inputs_high=extent(self.inputs)[1],
            outputs_low=extent(self.outputs)[0],
            outputs_high=extent(self.outputs)[1],
            setup=setup,
        )


def arena_sizes(descriptions: Sequence[Description], calls: Sequence[int]) -> tuple[int, int]:
    """Bytes that the arenas of inputs and outputs need for so many calls of any workload.

    Rounded up, by at most a quarter, since every process sees them: the largest workload may be a
    hidden one.
    """
    pairs = list(zip(descriptions, calls, strict=True))
    inputs = max(span_bytes(_input_sizes(d) * count) for d, count in pairs)
    outputs = max(span_bytes([o.nbytes for o in d.outputs] * count) for d, count in pairs)
    return _rounded(inputs), _rounded(outputs)


def _rounded(size: int) -> int:
    step = max(1 << max(size.bit_length() - 3, 0), mmap.PAGESIZE)
    return -(-size // step) * step


def output_bytes(description: Description) -> int:
    """Bytes of one call's outputs, each aligned."""
    return sum(aligned(output.nbytes) for output in description.outputs)


@dataclass(frozen=True)
class Sizes:
    """Bytes of one call: of what it reads, of what it only writes, and of what it does both to."""

    read: int
    written: int
    both: int

    @classmethod
    def of(cls, description: Description) -> Sizes:
        """An in-out argument belongs to `read` as well."""
        outputs = sum(output.nbytes for output in description.outputs)
        both = sum(int(a["nbytes"]) for a in description.arguments if a["kind"] == "inout")
        return cls(sum(_input_sizes(description)), outputs - both, both)

    @property
    def tensors(self) -> int:
        """Of all tensors, each once."""
        return self.read + self.written

    @property
    def in_arenas(self) -> int:
        """Of the places that tensors have in both arenas."""
        return self.read + self.written + self.both

    def outputs(self, moved: float | None) -> float:
        """What it must write, if it moves so many bytes in all.

        An in-out argument that comes back as it was is not written.
        """
        if moved is None:
            return float(self.written + self.both)
        return self.written + min(self.both, max(moved - self.read - self.written, 0.0))


def aligned(size: int) -> int:
    """`size` rounded up to the arenas' alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _input_sizes(description: Description) -> list[int]:
    return [int(tensor["nbytes"]) for tensor in description.tensors()]


class _Arguments:
    """Walks the described arguments, handing out the regions in order."""

    def __init__(self, layout: Layout) -> None:
        self._description = layout.description
        self._inputs = iter(layout.inputs)
        self._outputs = iter(layout.outputs)
        self._in_signature = any(
            argument["kind"] in ("output", "inout") for argument in layout.description.arguments
        )

    def encoded(self) -> list[wire.Argument]:
        if self._in_signature:  # c ABI: every parameter, in order
            return [self._parameter(argument) for argument in self._description.arguments]
        drawn = [
            wire.Argument(ArgumentKind.INPUT, region.nbytes, input_offset=region.offset)
            for region in self._inputs
        ]
        returned = [
            wire.Argument(ArgumentKind.OUTPUT, region.nbytes, output_offset=region.offset)
            for region in self._outputs
        ]
        return drawn + returned

    def _parameter(self, argument: Mapping[str, object]) -> wire.Argument:
        kind = argument["kind"]
        if kind == "value":
            return wire.Argument(ArgumentKind.VALUE, value=_bits(argument))
        if kind == "tensor":
            region = next(self._inputs)
            return wire.Argument(ArgumentKind.INPUT, region.nbytes, input_offset=region.offset)
        region = next(self._outputs)
        if kind == "output":
            return wire.Argument(ArgumentKind.OUTPUT, region.nbytes, output_offset=region.offset)
        before = next(self._inputs)
        return wire.Argument(ArgumentKind.INOUT, region.nbytes, before.offset, region.offset)


def _bits(argument: Mapping[str, Any]) -> int:
    dtype, value = argument["dtype"], argument["value"]
    if dtype == "bfloat16":  # the upper half of a float32, rounded to nearest even
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return int(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 & 0xFFFF
    return int.from_bytes(struct.pack(_FORMATS[dtype], value), "little")
