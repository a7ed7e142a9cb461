"""The shipped C++ kernels give the right answers on every CPU workload, hidden ones included."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_runner.data.formats import catalog_folder
from gpu_runner.data.signature import CParameter, Role
from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import Language
from gpu_runner.engine.problem import Drawn
from tests.unit.catalog.judging import Case, cases, task
from tests.unit.catalog.test_tasks import ROUTINES

FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", "-Wall", "-Werror")
GUARD = 64
"""Elements before and behind an output that no kernel may touch."""

Build = Callable[[str, ShippedKernel], ctypes.CDLL]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile a shipped kernel once, and load it."""
    folder, built = tmp_path_factory.mktemp("kernels"), dict[tuple[str, str], ctypes.CDLL]()

    def compiled(name: str, kernel: ShippedKernel) -> ctypes.CDLL:
        key = (name, kernel.path)
        if key not in built:
            target = folder / f"{name}-{Path(kernel.path).stem}.so"
            source = catalog_folder() / name / kernel.path
            subprocess.run(["g++", *FLAGS, str(source), "-o", str(target)], check=True)
            built[key] = ctypes.CDLL(str(target))
        return built[key]

    return compiled


def kernels(name: str) -> list[ShippedKernel]:
    return [kernel for kernel in task(name).kernels if kernel.language is Language.CPP]


RUNS = [
    pytest.param(case, kernel, id=f"{case}-{kernel.agent}")
    for case in cases(*sorted(ROUTINES))
    for kernel in kernels(case.name)
]


@pytest.mark.parametrize(("case", "kernel"), RUNS)
def test_a_shipped_kernel_is_right(case: Case, kernel: ShippedKernel, build: Build) -> None:
    function = getattr(build(case.name, kernel), task(case.name).c_signature.symbol)
    for seed in range(3):
        drawn = case.draw(seed)
        outputs = [_guarded(shape) for shape in _shapes(case, drawn)]
        function(*_arguments(case, drawn, [inner for _, inner in outputs]))
        for comparison in case.judge(seed, [inner for _, inner in outputs]):
            assert comparison.mismatch is None
        for whole, _ in outputs:
            assert torch.isnan(whole[:GUARD]).all()
            assert torch.isnan(whole[-GUARD:]).all()


def _shapes(case: Case, drawn: Drawn) -> list[torch.Size]:
    expected = case.function()(*drawn.arguments)
    return [expected.shape]


def _guarded(shape: torch.Size) -> tuple[Tensor, Tensor]:
    """NaNs, and a view of the given shape into their middle."""
    size = shape.numel()
    whole = torch.full((size + 2 * GUARD,), float("nan"))
    return whole, whole[GUARD : GUARD + size].view(shape)


def _arguments(case: Case, drawn: Drawn, outputs: list[Tensor]) -> list[Any]:
    """The arguments in the order of the C signature."""
    values = {**case.workload.parameters, **drawn.values}
    remaining = iter(outputs)
    return [
        _argument(parameter, next(remaining) if parameter.role is Role.OUTPUT else None, values)
        for parameter in task(case.name).c_signature.parameters
    ]


def _argument(parameter: CParameter, output: Tensor | None, values: dict[str, Any]) -> Any:
    if output is not None:
        return ctypes.c_void_p(output.data_ptr())
    value = values[parameter.name]
    if parameter.role is Role.INPUT:
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_float(value) if parameter.dtype == "float32" else ctypes.c_int(value)
