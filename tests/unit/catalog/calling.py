"""Compile a C++ kernel of the c ABI, call it on a drawn case, and judge what it wrote."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.signature import CParameter, Role
from gpu_runner.engine.problem import Drawn
from tests.unit.catalog.judging import Case, task

FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", "-Wall", "-Werror")
GUARD = 64
"""Elements before and behind an output that no kernel may touch."""


def compile_kernel(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Compile `source` to the shared library `target`; the caller looks at the exit status."""
    command = ["g++", *FLAGS, str(source), "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def assert_right(case: Case, library: ctypes.CDLL, seed: int) -> None:
    """Call the kernel on the inputs of `seed`: right, and nothing written beyond its output."""
    drawn = case.draw(seed)
    whole, inner = _guarded(case.function()(*drawn.arguments).shape)
    function = getattr(library, task(case.name).c_signature.symbol)
    function(*_arguments(case, drawn, inner))
    for comparison in case.judge(seed, [inner]):
        assert comparison.mismatch is None
    assert torch.isnan(whole[:GUARD]).all()
    assert torch.isnan(whole[-GUARD:]).all()


def _guarded(shape: torch.Size) -> tuple[Tensor, Tensor]:
    """NaNs, and a view of the given shape into their middle."""
    size = shape.numel()
    whole = torch.full((size + 2 * GUARD,), float("nan"))
    return whole, whole[GUARD : GUARD + size].view(shape)


def _arguments(case: Case, drawn: Drawn, output: Tensor) -> list[Any]:
    """The arguments in the order of the C signature."""
    values = {**case.workload.parameters, **drawn.values}
    return [
        _argument(parameter, output if parameter.role is Role.OUTPUT else None, values)
        for parameter in task(case.name).c_signature.parameters
    ]


def _argument(parameter: CParameter, output: Tensor | None, values: dict[str, Any]) -> Any:
    if output is not None:
        return ctypes.c_void_p(output.data_ptr())
    value = values[parameter.name]
    if parameter.role is Role.INPUT:
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_float(value) if parameter.dtype == "float32" else ctypes.c_int(value)
