"""The declaration that a submission must fit, and the shim that calls it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import torch

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.build import build
from gpu_runner.supervisor.build.declaration import declaration, shim_source
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
SCALE = Signature.parse("void scale(float* out, const float* in, float by, int32_t n, int64_t m)")


BF16 = Signature.parse("void f(__nv_bfloat16* out, const __nv_bfloat16* in, int N)")


@pytest.mark.parametrize("kind", DeviceKind)
def test_declaration_includes_what_its_types_need(kind: DeviceKind) -> None:
    on_cuda = kind is DeviceKind.CUDA
    assert ("#include <cuda_bf16.h>" in declaration(BF16, kind)) is on_cuda
    assert "bf16" not in declaration(SCALE, kind)
    assert 'extern "C" void scale(float* out' in declaration(SCALE, kind)


@pytest.mark.parametrize(
    ("written", "declared"),
    [
        ("const float* const out, float const * in,\n  float by, int32_t n, int64_t m", "const*"),
        ("float* out, float* __restrict__ in, const float by, const int32_t n, int64_t m", "*"),
        ("float* out, const float* in, float by, int n, int64_t m", ""),  # another type
        ("float* out, const float* in, float* by, int32_t n, int64_t m", ""),
        ("float* out, const float* in, float by, int32_t n", ""),
    ],
)
def test_const_before_a_pointer_is_the_authors_choice(written: str, declared: str) -> None:
    source = f'void helper(int);\nextern "C" void scale({written}) {{ scale(out, in, by, n, m); }}'
    text = declaration(SCALE, DeviceKind.CPU, source)
    expected = {
        "const*": "void scale(const float* out, const float* in, float by, int32_t n, int64_t m);",
        "*": "void scale(float* out, float* in, const float by, const int32_t n, int64_t m);",
        "": f"{SCALE.text};",
    }
    assert expected[declared] in text


@needs_jail
def test_bfloat16_on_a_cpu_rounds_as_torch_does(tmp_path: Path) -> None:
    body = "{ for (int i = 0; i < N; ++i) out[i] = __float2bfloat16(__bfloat162float(in[i]) / 3); }"
    kernel = f'{declaration(BF16, DeviceKind.CPU)}extern "C" {BF16.text} {body}\n'
    files = {"both.cpp": kernel}
    recipe = Recipe(files, "both.cpp", DeviceKind.CPU, ("-shared", "-fPIC"))
    built = build(recipe, SupervisorConfig(cache_folder=tmp_path))
    assert built.library is not None, built.report.log
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.bfloat16)
    out = torch.zeros_like(every)
    pointers = (ctypes.c_void_p(out.data_ptr()), ctypes.c_void_p(every.data_ptr()))
    ctypes.CDLL(str(built.library)).f(*pointers, len(every))
    wanted = (every.float() / 3).to(torch.bfloat16)
    assert torch.equal(out.nan_to_num(), wanted.nan_to_num())
    assert torch.equal(out.isnan(), wanted.isnan())


@needs_jail
def test_shim_passes_every_argument_as_its_type(tmp_path: Path) -> None:
    kernel = (
        "#include <stdint.h>\n"
        'extern "C" void scale(float* out, const float* in, float by, int32_t n, int64_t m)'
        "{ for (int i = 0; i < n; ++i) out[i] = in[i] * by + m; }"
    )
    files = {"both.cpp": kernel + "\n" + shim_source(SCALE)}
    recipe = Recipe(files, "both.cpp", DeviceKind.CPU, ("-shared", "-fPIC"))
    built = build(recipe, SupervisorConfig(cache_folder=tmp_path))
    assert built.library is not None, built.report.log
    library = ctypes.CDLL(str(built.library))
    out, data = (ctypes.c_float * 2)(), (ctypes.c_float * 2)(1.0, 2.0)
    values = [
        ctypes.c_void_p(ctypes.addressof(out)),
        ctypes.c_void_p(ctypes.addressof(data)),
        ctypes.c_float(10.0),
        ctypes.c_int32(2),
        ctypes.c_int64(5),
    ]
    pointers = (ctypes.c_void_p * 5)(*(ctypes.addressof(value) for value in values))
    library.kbench_invoke(ctypes.cast(library.scale, ctypes.c_void_p), pointers)
    assert list(out) == [15.0, 25.0]


@needs_jail
def test_second_build_comes_from_the_cache_and_a_failed_one_does_not(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    good = Recipe({"a.cpp": "int a;"}, "a.cpp", DeviceKind.CPU, ("-shared", "-fPIC"))
    first, second = build(good, config), build(good, config)
    assert (first.report.cached, second.report.cached) == (False, True)
    assert first.library == second.library
    assert decode(BuildReport, encode(first.report)) == first.report
    bad = Recipe({"a.cpp": "int a"}, "a.cpp", DeviceKind.CPU, ("-shared", "-fPIC"))
    for _ in range(2):
        built = build(bad, config)
        assert built.library is None
        assert not built.report.cached
        assert "error" in built.report.log
