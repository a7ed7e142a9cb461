"""What a function under measurement returned: checked, described, and copied out on a device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.wire import (
    MAX_DIMENSIONS,
    MAX_OUTPUTS,
    Argument,
    ErrorCode,
    OutputRecord,
)
from gpu_runner.engine.runner.mapped_arena import MappedArena


class CallError(Exception):
    """The runner gives up on a call; `code` is the wire's word for the reason."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def returned_tensors(result: object, device: str) -> list[Tensor]:
    """The tensors of a result in order, nested ones flattened and None left out.

    Those of a dictionary in its own order. Raises `CallError` (SHAPE) on anything that is not a
    dense tensor on the device.
    """
    found: list[Tensor] = []
    _collect(result, device, found)
    if not found:
        raise CallError(ErrorCode.SHAPE, "returned no tensor")
    return found


def _collect(value: Any, device: str, found: list[Tensor]) -> None:
    if value is None:
        return
    if type(value) in (tuple, list):  # no others: they may do work when they are read
        for item in value:
            _collect(item, device, found)
        return
    if type(value) is dict:
        _collect(list(value.values()), device, found)
        return
    if type(value) not in (Tensor, torch.nn.Parameter):
        name = type(value).__name__
        raise CallError(ErrorCode.SHAPE, f"returned {name}, not a tensor or a tuple of tensors")
    _check_dense(value, device)
    found.append(value.detach())
    if len(found) > MAX_OUTPUTS:
        raise CallError(ErrorCode.SHAPE, f"returned more than {MAX_OUTPUTS} tensors")


def _check_dense(tensor: Tensor, device: str) -> None:
    if tensor.layout is not torch.strided:
        raise CallError(ErrorCode.SHAPE, f"returned a tensor of layout {tensor.layout}")
    if tensor.device.type != device:
        raise CallError(ErrorCode.SHAPE, f"returned a tensor on {tensor.device.type}, not {device}")
    if tensor.dim() > MAX_DIMENSIONS:
        raise CallError(ErrorCode.SHAPE, f"returned a tensor of {tensor.dim()} dimensions")
    if tensor.is_neg() or tensor.is_conj():
        reason = (
            "returned a lazily negated or conjugated tensor; call resolve_neg() or resolve_conj()"
        )
        raise CallError(ErrorCode.SHAPE, reason)


def record_of(tensor: Tensor) -> OutputRecord:
    """Its true dtype, shape, strides in elements, bytes if it were contiguous, and its address."""
    name = str(tensor.dtype).removeprefix("torch.")
    nbytes = math.prod(tensor.shape) * tensor.dtype.itemsize
    shown = tuple(tensor.shape), tensor.stride()
    return OutputRecord(name, *shown, nbytes, address_of(tensor))


def address_of(tensor: Tensor) -> int:
    """Of its first byte, on a CPU; else 0."""
    return tensor.data_ptr() if tensor.device.type == "cpu" else 0


def copy_out(
    tensors: Sequence[Tensor],
    dtypes: Sequence[str],
    places: Sequence[Argument],
    outputs: MappedArena,
) -> None:
    """Write each tensor's contiguous bytes to its place if dtype and size are the expected ones.

    The others are left out: their records tell the supervisor why.
    """
    for tensor, dtype, place in zip(tensors, dtypes, places, strict=False):
        record = record_of(tensor)
        if record.dtype != dtype or record.nbytes != place.nbytes:
            continue
        shape = tuple(tensor.shape)
        outputs.tensor(place.output_offset, tensor.dtype, shape).copy_(tensor)
