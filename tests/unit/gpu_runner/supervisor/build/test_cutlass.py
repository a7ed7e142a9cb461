"""CUTLASS and CuTe: headers of a wheel, which the builder's jail sees where it is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_runner.data.verdict import Abi, DeviceKind
from gpu_runner.supervisor.build.build import Recipe, build
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.doctor import doctor
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

KERNEL = """
// flags: --expt-relaxed-constexpr
#include <cute/tensor.hpp>
#include <cutlass/numeric_types.h>
#include <cub/block/block_reduce.cuh>
#include <thrust/functional.h>

using namespace cute;

__global__ void sums(const cutlass::half_t* in, float* out, int rows, int columns) {
  __shared__ typename cub::BlockReduce<float, 128>::TempStorage storage;
  auto matrix = make_tensor(make_gmem_ptr(in), make_shape(rows, columns), LayoutRight{});
  float sum = 0.0f;
  for (int i = threadIdx.x; i < size<1>(matrix); i += 128) sum += float(matrix(blockIdx.x, i));
  sum = cub::BlockReduce<float, 128>(storage).Reduce(sum, thrust::plus<float>());
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

extern "C" void row_sums(const void* in, float* out, int rows, int columns) {
  sums<<<rows, 128>>>(static_cast<const cutlass::half_t*>(in), out, rows, columns);
}
"""
VERSION = "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n"
nvcc = shutil.which("nvcc", path="/usr/local/cuda/bin:/usr/local/bin:/usr/bin")


@pytest.fixture(autouse=True)
def _found_anew() -> Iterator[None]:
    toolchain.cutlass.cache_clear()
    yield
    toolchain.cutlass.cache_clear()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    include = folder / "cutlass_library/source/include"
    (include / "cutlass").mkdir(parents=True)
    (include / "cutlass/version.h").write_text(VERSION)
    (folder / "cutlass_library/__init__.py").write_text("raise AssertionError('it is imported')\n")
    monkeypatch.syspath_prepend(str(folder))
    return include


def test_the_headers_are_found_without_importing_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = install(tmp_path, monkeypatch)
    assert toolchain.cutlass() == toolchain.Cutlass((include,), "4.2.1")
    assert toolchain.cutlass_paths() == (include,)
    assert doctor(tmp_path)[2]["cutlass"] == "4.2.1, with CuTe"
    toolchain.cutlass.cache_clear()  # without the wheel nothing changes
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    assert toolchain.cutlass() is None
    assert toolchain.cutlass_paths() == ()


@pytest.mark.skipif(nvcc is None, reason="needs nvcc")
@pytest.mark.skipif(toolchain.cutlass() is None, reason="needs the wheel nvidia-cutlass")
@pytest.mark.skipif(bool(jail.probe()), reason="needs a jail")
def test_a_kernel_of_cute_cub_and_thrust_builds_in_the_jail(tmp_path: Path) -> None:
    flags = toolchain.flags(DeviceKind.CUDA, Abi.C, "sm_90a", ("--expt-relaxed-constexpr",))
    flags.append(toolchain.required_symbol(DeviceKind.CUDA, "row_sums"))
    recipe = Recipe(
        {"kernel.cu": KERNEL},
        "kernel.cu",
        DeviceKind.CUDA,
        tuple(flags),
        toolchain.cutlass_paths(),
        is_read=True,
    )
    built = build(recipe, SupervisorConfig(cache_folder=tmp_path, kind=DeviceKind.CUDA))
    assert built.library is not None, built.report.log
