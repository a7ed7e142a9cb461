"""The declaration that a submission must fit, and the shim that calls it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor import jail
from gpu_runner.supervisor.build import Recipe, build, declaration, shim_source
from gpu_runner.supervisor.config import SupervisorConfig

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
SCALE = Signature.parse("void scale(float* out, const float* in, float by, int32_t n, int64_t m)")


def test_declaration_includes_what_its_types_need() -> None:
    bf16 = Signature.parse("void f(__nv_bfloat16* out, const __nv_bfloat16* in, int N)")
    assert "#include <cuda_bf16.h>" in declaration(bf16)
    assert "cuda_bf16.h" not in declaration(SCALE)
    assert 'extern "C" void scale(float* out' in declaration(SCALE)


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
