"""Run a reference that was written for float32 in float64 throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode

from gpu_runner.engine.problem.problem import exact


class Float64Mode(TorchFunctionMode):
    """Reads float32 as float64 wherever a reference asks for it: `x.float()`, `dtype=...`."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        wide = {name: _widened(value) for name, value in (kwargs or {}).items()}
        return func(*map(_widened, args), **wide)


def _widened(value: object) -> object:
    return torch.float64 if value is torch.float32 else value


@contextmanager
def in_double(device: str) -> Iterator[None]:
    """`exact`, with explicit casts to float32 read as casts to float64."""
    with exact(device), Float64Mode():
        yield
