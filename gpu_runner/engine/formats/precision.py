"""Run a reference that was written for float32 in float64 throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gpu_runner.engine.problem import exact


class Float64Mode(TorchFunctionMode):
    """Reads float32 as float64 wherever a reference asks for it: `x.float()`, `dtype=...`."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        wide = {name: _widened(value) for name, value in (kwargs or {}).items()}
        return func(*map(_widened, args), **wide)


def _widened(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value


@contextmanager
def in_double(device: str) -> Iterator[None]:
    """`exact`, with explicit casts to float32 read as casts to float64."""
    with exact(device), Float64Mode():
        yield
