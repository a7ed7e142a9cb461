"""Declaration, types and cache of builds, and what the assembler reports."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from pathlib import Path

import pytest
import torch

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.profile import KernelResources
from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.build import build
from gpu_runner.supervisor.build.compiler_log import KERNELS_LIMIT, kernel_resources, shortened
from gpu_runner.supervisor.build.declaration import declaration, shim_source
from gpu_runner.supervisor.build.eviction import IN_USE_S, evict
from gpu_runner.supervisor.build.importer import module_jail
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.process import ChildProcess

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
SCALE = Signature.parse("void scale(float* out, const float* in, float by, int32_t n, int64_t m)")


BF16 = Signature.parse("void f(__nv_bfloat16* out, const __nv_bfloat16* in, int N)")


@pytest.mark.parametrize("kind", DeviceKind)
def test_declaration_includes_what_its_types_need(kind: DeviceKind) -> None:
    on_cuda = kind is DeviceKind.CUDA
    assert ("#include <cuda_bf16.h>" in declaration(BF16, kind)) is on_cuda
    assert "bf16" not in declaration(SCALE, kind)
    assert 'extern "C" void scale(float* out' in declaration(SCALE, kind)
    small = declaration(Signature.parse(SMALL), kind)
    assert ("#include <cuda_fp8.h>" in small, "kbench_fp8" in small) == (on_cuda, not on_cuda)


@pytest.mark.parametrize(
    ("written", "declared"),
    [
        ("const float* const out, float const * in,\n  float by, int32_t n, int64_t m", "const*"),
        ("float* out, float* __restrict__ in, const float by, const int32_t n, int64_t m", "*"),
        ("const float* a, float* b, float by, int32_t n, int64_t m", ""),  # swapped
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
    flags = ["-std=c++20", "-shared", "-fPIC", "-Wall", "-Werror"]
    command = ["g++", *flags, "kernel.cpp", "shim.cpp", "-o", str(library)]
    subprocess.run(command, check=True, cwd=tmp_path)
    loaded = ctypes.CDLL(str(library))
    a, b, c, d = ctypes.c_int8(-1), ctypes.c_uint8(255), ctypes.c_bool(False), ctypes.c_uint8(0x3C)
    addresses = [ctypes.pointer(ctypes.c_void_p(ctypes.addressof(each))) for each in (a, b, c, d)]
    flag = ctypes.c_uint64(1)
    arguments = (ctypes.c_void_p * 5)(
        *(ctypes.cast(each, ctypes.c_void_p) for each in addresses), ctypes.addressof(flag)
    )
    loaded.kbench_invoke(ctypes.cast(loaded.f, ctypes.c_void_p), arguments)
    assert c.value


DAY = IN_USE_S


def add(builds: Path, name: str, age_s: float, size: int = 1000) -> Path:
    folder = builds / name
    folder.mkdir(parents=True)
    (folder / "library.so").write_bytes(bytes(size - 2))
    (folder / "report.json").write_text("{}")
    age(folder, age_s)
    return folder


def age(folder: Path, age_s: float) -> None:
    then = time.time() - age_s
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))


def left(builds: Path) -> set[str]:
    return {folder.name for folder in builds.iterdir()}


def test_the_oldest_go_and_what_was_asked_for_today_stays(tmp_path: Path) -> None:
    add(tmp_path, "today", 0.9 * DAY, size=5000)
    old = add(tmp_path, "asked for again", 9 * DAY)
    os.utime(old / "report.json")
    add(tmp_path, "old", 9 * DAY)
    assert evict(tmp_path, 0) == 1
    assert left(tmp_path) == {"today", "asked for again"}
    assert evict(tmp_path / "builds", 0) == 0  # there is none
    builds = tmp_path / "others"
    for days in (2, 5, 3, 4):
        add(builds, f"{days} days", days * DAY)
    (builds / "begun").mkdir()
    assert evict(builds, 2000) == 2
    assert left(builds) == {"2 days", "3 days", "begun"}
    assert evict(builds, 2000) == 0


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
def test_a_build_that_is_found_counts_as_asked_for(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    recipe = Recipe({"a.cpp": "int a;"}, "a.cpp", DeviceKind.CPU, ("-shared", "-fPIC"))
    first = build(recipe, config)
    assert first.library is not None
    age(first.library.parent, 3 * DAY)
    assert build(recipe, config).report.cached
    assert evict(tmp_path / "builds", 0) == 0
    age(first.library.parent, 3 * DAY)
    assert evict(tmp_path / "builds", 0) == 1
    assert not build(recipe, config).report.cached


CAPTURED = (Path(__file__).parents[1] / "captured" / "ptxas.txt").read_text()


def test_every_kernel_is_read_with_what_it_takes() -> None:
    assert kernel_resources(CAPTURED) == (
        KernelResources(
            name="void (anonymous namespace)::reduce<float>(float*, float const*, int)",
            registers=10,
            shared_bytes=1024,
        ),
        KernelResources(name="scale(float*, int)", registers=8),
        KernelResources(
            name="spills(float*, float const*, int)",
            registers=32,
            stack_bytes=2496,
            spill_store_bytes=2620,
            spill_load_bytes=3124,
        ),
    )


def test_a_log_without_kernels_or_with_many_stays_readable() -> None:
    assert kernel_resources("kernel.cpp:3:5: warning: unused variable\n") == ()
    many = "".join(
        f"ptxas info : Compiling entry function 'f{i}' for 'sm_90'\nptxas info : Used 4 registers\n"
        for i in range(KERNELS_LIMIT + 9)
    )
    assert len(kernel_resources(many)) == KERNELS_LIMIT


def test_a_long_log_keeps_its_first_error_and_its_last_words() -> None:
    notes = "/usr/include/c++/12/system_error:279:5: note: candidate: 'template'\n" * 2000
    log = f"{notes}k.cpp: In function 'f':\nk.cpp:11:3: error: no match\n{notes}1 error\n"
    short = shortened(log, 32_768)
    assert len(short) <= 32_768
    assert short.startswith("k.cpp: In function 'f':\nk.cpp:11:3: error: no match\n")
    assert short.endswith("1 error\n")
    assert shortened("k.cpp:11:3: error: no match\n", 32_768) == "k.cpp:11:3: error: no match\n"


def test_a_compiler_gives_way_to_who_is_measured() -> None:
    with ChildProcess(module_jail(SupervisorConfig()), ["/usr/bin/nice"], jailed=False) as child:
        child.wait(10)
    assert int(child.output) > os.nice(0)
