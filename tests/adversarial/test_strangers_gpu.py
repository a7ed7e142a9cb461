"""CUDA and Python as strangers write them: it builds, or runs, and nobody suspects it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest
import torch

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.static import module_suspicions
from gpu_runner.data.verdict import Language, Mode
from gpu_runner.supervisor.build.binary import static_suspicions
from gpu_runner.supervisor.build.build import build_solution
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

NVCC = shutil.which("nvcc", path="/usr/local/cuda/bin:/usr/local/bin:/usr/bin")
ADD = 'extern "C" void vector_add(const float* A, const float* B, float* C, int N)'
DOT = 'extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N)'
GRID = "(N + 255) / 256, 256"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
PLAIN = "__global__ void add(const float* a, const float* b, float* c, int n)"

CUDA = {
    "checked": f"""
#include <cstdio>
#include <cstdlib>
#define FAILED(e) (fprintf(stderr, "%d: %s\\n", __LINE__, cudaGetErrorString(e)), exit(1))
#define CHECK(call) do {{ if (cudaError_t e_ = (call); e_ != cudaSuccess) FAILED(e_); }} while (0)
{PLAIN} {{ {INDEX} if (i < n) c[i] = a[i] + b[i]; }}
{ADD} {{
  add<<<{GRID}>>>(A, B, C, N);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}}""",
    "four at a time": f"""
{PLAIN} {{
  {INDEX}
  if (4 * i + 3 < n) {{
    float4 x = __ldg(reinterpret_cast<const float4*>(a) + i), y = __ldcs((const float4*)b + i);
    y = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    __stcs(reinterpret_cast<float4*>(c) + i, y);
  }} else for (int j = 4 * i; j < n; ++j) c[j] = a[j] + b[j];
}}
{ADD} {{ add<<<(N + 1023) / 1024, 256>>>(A, B, C, N); }}""",
    "shuffles and a last block": f"""
__device__ unsigned finished;
__device__ double parts[1024];
__global__ void dot(float* out, const float* x, const float* y, int n) {{
  double sum = 0;
  for ({INDEX} i < n; i += gridDim.x * blockDim.x) sum += (double)x[i] * y[i];
  for (int o = 16; o; o /= 2) sum += __shfl_down_sync(~0u, sum, o);
  if (threadIdx.x) return;
  parts[blockIdx.x] = sum;
  __threadfence();
  if (atomicInc(&finished, gridDim.x - 1) != gridDim.x - 1) return;
  for (int b = sum = 0; b < (int)gridDim.x; ++b) sum += __ldcg(parts + b);
  *out = sum;
}}
{DOT} {{ dot<<<1024, 32>>>(loss, X, Y, N); }}""",
    "cooperative groups": f"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void dot(float* out, const float* x, const float* y, int n) {{
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  float sum = 0;
  for (auto i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size())
    sum += x[i] * y[i];
  sum = cg::reduce(tile, sum, cg::plus<float>());
  if (tile.thread_rank() == 0) atomicAdd(out, sum);
}}
{DOT} {{ cudaMemsetAsync(loss, 0, 4); dot<<<128, 256>>>(loss, X, Y, N); }}""",
    "copies that do not wait": f"""
#include <cuda_pipeline.h>
{PLAIN} {{
  __shared__ float x[256], y[256];
  {INDEX}
  if (i < n) {{
    __pipeline_memcpy_async(x + threadIdx.x, a + i, 4);
    __pipeline_memcpy_async(y + threadIdx.x, b + i, 4);
  }}
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (i < n) c[i] = x[threadIdx.x] + y[threadIdx.x];
}}
{ADD} {{ add<<<{GRID}>>>(A, B, C, N); }}""",
    "instructions of the device": f"""
{PLAIN} {{
  {INDEX}
  if (i >= n) return;
  float x, y;
  asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(x) : "l"(a + i));
  asm("{{ .reg .pred p; setp.eq.u32 p, 0, 0; @p ld.global.f32 %0, [%1]; }}" : "=f"(y) : "l"(b + i));
  asm volatile("st.global.cs.f32 [%0], %1;" :: "l"(c + i), "f"(x + y) : "memory");
}}
{ADD} {{ add<<<{GRID}>>>(A, B, C, N); }}""",
    "its own stream, joined": f"""
{PLAIN} {{ {INDEX} if (i < n) c[i] = a[i] + b[i]; }}
{ADD} {{
  static cudaStream_t side = nullptr;
  if (!side) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  const int half = N / 2;
  if (half) add<<<(half + 255) / 256, 256, 0, side>>>(A, B, C, half);
  add<<<(N - half + 255) / 256, 256>>>(A + half, B + half, C + half, N - half);
  cudaStreamSynchronize(side);
}}""",
    "chosen by occupancy": f"""
{PLAIN} {{ for ({INDEX} i < n; i += gridDim.x * blockDim.x) c[i] = a[i] + b[i]; }}
{ADD} {{
  int blocks = 0, threads = 0, device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, add, 0, 0);
  cudaFuncSetAttribute(add, cudaFuncAttributePreferredSharedMemoryCarveout, 0);
  add<<<blocks, threads>>>(A, B, C, N);
}}""",
    "scratch of the stream's pool": f"""
__global__ void part(double* parts, const float* x, const float* y, int n) {{
  double sum = 0;
  for ({INDEX} i < n; i += gridDim.x * blockDim.x) sum += (double)x[i] * y[i];
  parts[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}}
__global__ void all(float* out, const double* parts) {{
  double sum = 0;
  for (int i = 0; i < 4096; ++i) sum += parts[i];
  *out = sum;
}}
{DOT} {{
  double* parts = nullptr;
  cudaMallocAsync(&parts, 4096 * sizeof(double), nullptr);
  part<<<16, 256>>>(parts, X, Y, N);
  all<<<1, 1>>>(loss, parts);
  cudaFreeAsync(parts, nullptr);
}}""",
    "CUB's blocks": f"""
#include <cub/block/block_reduce.cuh>
__global__ void dot(float* out, const float* x, const float* y, int n) {{
  using Reduce = cub::BlockReduce<double, 256>;
  __shared__ typename Reduce::TempStorage storage;
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += (double)x[i] * y[i];
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) *out = sum;
}}
{DOT} {{ dot<<<1, 256>>>(loss, X, Y, N); }}""",
}
SLOW = {
    "CUB's devices": f"""
#include <cub/device/device_reduce.cuh>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/zip_function.h>
struct Times {{ __device__ double operator()(float a, float b) const {{ return (double)a * b; }} }};
{DOT} {{
  auto pairs = thrust::make_zip_iterator(X, Y);
  auto in = thrust::make_transform_iterator(pairs, thrust::make_zip_function(Times()));
  size_t bytes = 0;
  cub::DeviceReduce::Sum(nullptr, bytes, in, loss, N);
  void* scratch = nullptr;
  cudaMalloc(&scratch, bytes);
  cub::DeviceReduce::Sum(scratch, bytes, in, loss, N);
  cudaFree(scratch);
}}""",
    "Thrust": f"""
#include <thrust/execution_policy.h>
#include <thrust/transform.h>
{ADD} {{ thrust::transform(thrust::device, A, A + N, B, C, thrust::plus<float>()); }}""",
}

PYTHON = {
    "views of numpy": """
import numpy as np
import torch
def forward(A, B, N):
    out = torch.empty_like(A)
    np.add(A.numpy(), B.numpy(), out=out.numpy())
    return out
""",
    "pieces for threads": """
from concurrent.futures import ThreadPoolExecutor
import os
import torch
POOL = ThreadPoolExecutor(os.cpu_count())
def forward(A, B, N):
    out = torch.empty_like(A)
    parts = zip(A.chunk(4), B.chunk(4), out.chunk(4))
    list(POOL.map(lambda part: torch.add(part[0], part[1], out=part[2]), parts))
    return out
""",
    "a module with buffers": """
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(()), persistent=False)
    def forward(self, A, B, N):
        return torch.addcmul(A, B, self.one)
forward = ModelNew().forward
""",
    "a function of autograd": """
import torch
class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.mark_non_differentiable()
        return a + b
    @staticmethod
    def backward(ctx, grad):
        return grad, grad
def forward(A, B, N):
    return Add.apply(A, B)
""",
    "a table of functions": """
import functools
import operator
import torch
KINDS = {torch.float32: operator.add, torch.float64: operator.add}
@functools.lru_cache(maxsize=None)
def chosen(dtype):
    return KINDS[dtype]
def forward(A, B, N):
    return chosen(A.dtype)(A, B)
""",
    "types and names": """
from __future__ import annotations
import dataclasses
import math
from typing import NamedTuple
import torch
class Sizes(NamedTuple):
    rows: int
    columns: int
@dataclasses.dataclass(frozen=True)
class Plan:
    sizes: Sizes
def forward(A: torch.Tensor, B: torch.Tensor, N: int) -> torch.Tensor:
    plan = Plan(Sizes(1, math.prod((N,))))
    return (A.view(plan.sizes) + B.view(plan.sizes)).view(N)
""",
    "settings of its own": """
import os
import warnings
import torch
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
warnings.filterwarnings("ignore")
BLOCK = int(os.environ.get("BLOCK", "4096"))
@torch.inference_mode()
def forward(A, B, N):
    out = A.new_empty(N)
    for at in range(0, N, BLOCK):
        end = min(at + BLOCK, N)
        torch.add(A[at:end], B[at:end], out=out[at:end])
    return out
""",
    "asks what there is": """
import importlib.util
import platform
import sys
import torch
HAS_TRITON = importlib.util.find_spec("triton") is not None
if torch.cuda.is_available() and HAS_TRITON:
    import triton
if __name__ == "__main__":
    sys.exit(platform.machine())
def forward(A, B, N):
    return torch.add(A, B, alpha=1)
""",
}


def suspected(source: str, folder: Path) -> list[str]:
    """What the static rules say of a CUDA source once it is built."""
    task = find_task("vector_add" if "vector_add(" in source else "dot_product")
    request = EvaluationRequest(
        evaluation_id="stranger",
        task=task,
        solution=Solution(source=source, language=Language.CUDA),
        mode=Mode.COMPILE,
        device="cuda",
    )
    kind = Language.CUDA.device_kinds[0]
    built = build_solution(request, SupervisorConfig(kind=kind, cache_folder=folder))
    assert built.library is not None, built.report.log
    return [found.reason for found in static_suspicions(request, built.library)]


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
@pytest.mark.skipif(NVCC is None, reason="no nvcc")
@pytest.mark.parametrize(
    "name", [*CUDA, *(pytest.param(each, marks=pytest.mark.thorough) for each in SLOW)]
)
def test_cuda_builds_and_is_not_suspected(name: str, tmp_path: Path) -> None:
    assert suspected((CUDA | SLOW)[name], tmp_path) == []


@pytest.mark.parametrize("name", PYTHON)
def test_python_runs_and_is_not_suspected(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain torch is a hint where a task allows no library, and nothing else is said of it."""
    path = tmp_path / "stranger.py"
    path.write_text(PYTHON[name])
    spec = importlib.util.spec_from_file_location("stranger", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "stranger", module)
    spec.loader.exec_module(module)
    a, b = torch.randn(10_007), torch.randn(10_007)
    assert torch.equal(module.forward(a, b, 10_007), a + b)
    said = [found.reason for found in module_suspicions(PYTHON[name], find_task("vector_add"))]
    assert [reason for reason in said if not reason.startswith("python-library: ")] == []
