"""Compile a C++ kernel of the c ABI, call it on a drawn case, and judge what it wrote."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.flags import FIXED
from gpu_runner.data.signature import CParameter, Role, Signature
from gpu_runner.data.verdict import DeviceKind, Language
from gpu_runner.engine.problem.arguments import as_signature_says
from gpu_runner.engine.problem.problem import Drawn, in_float64, outputs_of
from gpu_runner.supervisor.build.declaration import declaration
from tests.unit.catalog.judging import Case, task

FLAGS = (*FIXED[Language.CPP], "-Werror")
GUARD = 256
"""Bytes before and behind an output that no kernel may touch."""
POISON = 0xA5
_SCALARS = {"float32": ctypes.c_float, "float64": ctypes.c_double, "int64": ctypes.c_int64}


def compile_kernel(
    source: Path, target: Path, signature: Signature
) -> subprocess.CompletedProcess[str]:
    """Compile `source` to the shared library `target`; the caller looks at the exit status."""
    header = target.with_suffix(".h")
    header.write_text(declaration(signature, DeviceKind.CPU))
    command = ["g++", *FLAGS, "-include", str(header), str(source), "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def assert_right(case: Case, library: ctypes.CDLL, seed: int) -> None:
    """Call the kernel on the inputs of `seed`: right, and nothing written beyond its outputs."""
    drawn = case.draw(seed)
    eager = outputs_of(case.function()(*in_float64(drawn.arguments)))
    buffers = written_by(case, library, drawn, as_signature_says(task(case.name), eager))
    for comparison in case.judge(seed, [inner for _, inner in buffers]):
        assert comparison.mismatch is None
    for whole, _ in buffers:
        assert (whole[:GUARD] == POISON).all()
        assert (whole[-GUARD:] == POISON).all()


def written_by(
    case: Case, library: ctypes.CDLL, drawn: Drawn, like: Sequence[Tensor]
) -> list[tuple[Tensor, Tensor]]:
    """Call the kernel; each output's whole buffer, and the view of the output's shape in it."""
    signature = task(case.name).c_signature
    buffers = [_guarded(output) for output in like]
    written = dict(zip((p.name for p in signature.outputs), buffers, strict=True))
    for parameter in signature.parameters:
        if parameter.role is Role.INOUT:
            written[parameter.name][1].copy_(drawn.values[parameter.name])
    function = getattr(library, signature.symbol)
    function(*_arguments(case, drawn, {name: inner for name, (_, inner) in written.items()}))
    return buffers


def _guarded(like: Tensor) -> tuple[Tensor, Tensor]:
    """Poisoned bytes, and a view into their middle of the dtype and shape of `like`."""
    size = like.numel() * like.element_size()
    whole = torch.full((size + 2 * GUARD,), POISON, dtype=torch.uint8)
    return whole, whole[GUARD : GUARD + size].view(like.dtype).view(like.shape)


def _arguments(case: Case, drawn: Drawn, written: dict[str, Tensor]) -> list[Any]:
    """The arguments in the order of the C signature."""
    values = {**case.workload.parameters, **drawn.values, **written}
    parameters = task(case.name).c_signature.parameters
    return [_argument(parameter, values[parameter.name]) for parameter in parameters]


def _argument(parameter: CParameter, value: Any) -> Any:
    if parameter.role is not Role.SCALAR:
        return ctypes.c_void_p(value.data_ptr())
    if parameter.dtype == "bfloat16":  # passed as its bits are, in an integer register
        return ctypes.c_uint16(int(torch.tensor(value, dtype=torch.bfloat16).view(torch.uint16)))
    return _SCALARS.get(parameter.dtype, ctypes.c_int)(value)
