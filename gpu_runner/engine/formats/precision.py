"""Run a reference that was written for narrower dtypes in float64 throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode

from gpu_runner.engine.problem.problem import exact

FLOAT32 = frozenset({torch.float32})
NARROW = FLOAT32 | {torch.float16, torch.bfloat16}
"""What a reference asks for that rounds on the way, as its text says and a kernel need not."""
_CASTS: dict[object, torch.dtype] = {
    torch.Tensor.float: torch.float32,
    torch.Tensor.half: torch.float16,
    torch.Tensor.bfloat16: torch.bfloat16,
}


class Float64Mode(TorchFunctionMode):
    """Reads some dtypes as float64 where a reference asks for them: `x.float()`, `dtype=...`."""

    def __init__(self, widened: frozenset[torch.dtype]) -> None:
        super().__init__()
        self._widened = widened

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if func in _CASTS and _CASTS[func] in self._widened:
            func = torch.Tensor.double
        wide = {name: self._wide(value) for name, value in (kwargs or {}).items()}
        return func(*map(self._wide, args), **wide)

    def _wide(self, value: object) -> object:
        is_dtype = isinstance(value, torch.dtype)
        return torch.float64 if is_dtype and value in self._widened else value


@contextmanager
def in_double(device: str, widened: frozenset[torch.dtype] = FLOAT32) -> Iterator[None]:
    """`exact`, with explicit casts to these dtypes read as casts to float64."""
    with exact(device), Float64Mode(widened):
        yield
