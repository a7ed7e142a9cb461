"""Types of eight bits in C++: what kernels on a CPU get rounds and reads as torch has it."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch

from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.declaration import declaration, shim_source

KERNEL = """
extern "C" void convert(const {0}* codes, const float* values, float* wide, {0}* narrow, int n) {{
  for (int i = 0; i < n; ++i) {{
    wide[i] = float(codes[i]);
    narrow[i] = {0}(values[i]);
  }}
}}
"""
SIGNATURE = "void convert(const {0}* codes, const float* values, float* wide, {0}* narrow, int n)"
NAMES = [("__nv_fp8_e4m3", torch.float8_e4m3fn), ("__nv_fp8_e5m2", torch.float8_e5m2)]
SMALL = "void f(const int8_t* a, const uint8_t* b, bool* c, const __nv_fp8_e4m3* d, bool flag)"


def values_of(dtype: torch.dtype) -> torch.Tensor:
    """Random numbers of all sizes, halves between neighbours, and the special ones."""
    codes = torch.arange(127, dtype=torch.uint8).view(dtype).float()
    finite = codes[torch.isfinite(codes)]
    middles = (finite[1:] + finite[:-1]) / 2
    generator = torch.Generator().manual_seed(1)
    spread = torch.randn(4000, generator=generator) * 2.0 ** torch.randint(
        -20, 18, (4000,), generator=generator
    )
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e30, -1e30, 1e-45])
    return torch.cat((finite, -finite, middles, -middles, spread, special))


@pytest.mark.parametrize(("name", "dtype"), NAMES)
def test_they_are_torchs(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    signature = Signature.parse(SIGNATURE.format(name))
    source = tmp_path / "kernel.cpp"
    source.write_text(KERNEL.format(name))
    header = tmp_path / "declaration.h"
    header.write_text(declaration(signature, DeviceKind.CPU))
    library = tmp_path / "kernel.so"
    flags = ["-std=c++20", "-O3", "-shared", "-fPIC", "-Wall", "-Werror"]
    subprocess.run(
        ["g++", *flags, "-include", str(header), str(source), "-o", str(library)], check=True
    )
    values = values_of(dtype)
    count = len(values)
    codes = torch.arange(count).to(torch.uint8)
    wide, narrow = torch.zeros(count), torch.zeros(count, dtype=torch.uint8)
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (codes, values, wide, narrow)]
    ctypes.CDLL(str(library)).convert(*pointers, count)
    assert torch.equal(wide.nan_to_num(nan=7e9), codes.view(dtype).float().nan_to_num(nan=7e9))
    largest = torch.finfo(dtype).max
    expected = values.clamp(-largest, largest).to(dtype).view(torch.uint8)
    is_nan = values.isnan()
    assert torch.equal(narrow[~is_nan], expected[~is_nan])
    assert narrow.view(dtype).float()[is_nan].isnan().all()


def test_small_types_build_on_both_sides_of_the_shim(tmp_path: Path) -> None:
    signature = Signature.parse(SMALL)
    body = "{ *c = flag && *a == -1 && *b == 255 && float(*d) == 1.5f; }"
    (tmp_path / "declaration.h").write_text(declaration(signature, DeviceKind.CPU))
    kernel = f'#include "declaration.h"\nextern "C" {signature.text} {body}\n'
    (tmp_path / "kernel.cpp").write_text(kernel)
    (tmp_path / "shim.cpp").write_text(shim_source(signature))
    library = tmp_path / "both.so"
    command = [
        "g++",
        "-std=c++20",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Werror",
        "kernel.cpp",
        "shim.cpp",
    ]
    subprocess.run([*command, "-o", str(library)], check=True, cwd=tmp_path)
    loaded = ctypes.CDLL(str(library))
    a, b, c, d = ctypes.c_int8(-1), ctypes.c_uint8(255), ctypes.c_bool(False), ctypes.c_uint8(0x3C)
    addresses = [ctypes.pointer(ctypes.c_void_p(ctypes.addressof(each))) for each in (a, b, c, d)]
    flag = ctypes.c_uint64(1)
    arguments = (ctypes.c_void_p * 5)(
        *(ctypes.cast(each, ctypes.c_void_p) for each in addresses), ctypes.addressof(flag)
    )
    loaded.kbench_invoke(ctypes.cast(loaded.f, ctypes.c_void_p), arguments)
    assert c.value


def test_a_gpu_gets_cudas_own() -> None:
    text = declaration(Signature.parse(SMALL), DeviceKind.CUDA)
    assert "#include <cuda_fp8.h>" in text
    assert "kbench_fp8" not in text
