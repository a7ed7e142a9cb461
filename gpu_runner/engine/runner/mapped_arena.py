"""Maps device memory that another process has made, for the inputs and outputs of calls."""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor

from gpu_runner.data.wire import Argument, ArgumentKind, Call
from gpu_runner.engine.device.device_memory import import_
from gpu_runner.engine.runner.passage import Coming


class MappedArena:
    """The memory that `create` made in another process, as `arena.Arena` is for shared files."""

    def __init__(self, descriptor: int, nbytes: int) -> None:
        self._memory = import_(descriptor, nbytes)

    def bytes(self, low: int, high: int) -> Tensor:
        """The bytes [low, high); see `Arena.bytes`."""
        if not 0 <= low <= high <= self._memory.numel():
            raise ValueError(f"bad range of an arena: {low} to {high}")
        return self._memory[low:high]

    def of(self, call: Call) -> Tensor:
        """Where the inputs of a call will be."""
        return self.bytes(call.inputs_low, call.inputs_high)

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor's storage begins in this memory."""
        low = self._memory.data_ptr()
        return low <= tensor.untyped_storage().data_ptr() < low + self._memory.numel()

    def comes_back(self, argument: Argument, tensor: Tensor) -> bool:
        """Whether a tensor is the in-out argument itself, which a function may return unchanged."""
        at = tensor.data_ptr() - self._memory.data_ptr()
        return argument.kind is ArgumentKind.INOUT and at == argument.input_offset

    def let_go(self) -> None:
        """Do nothing: all calls use the same device memory."""

    def coming(self, call: Call, owned: Collection[int] = ()) -> Coming:
        """Nothing has to be mapped: what a call reads is there when the gate opens."""
        return Coming()

    def tensor(self, offset: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """A contiguous tensor whose first byte is at `offset`."""
        nbytes = dtype.itemsize * math.prod(shape)
        return self.bytes(offset, offset + nbytes).view(dtype).view(shape)
