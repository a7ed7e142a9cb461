"""The whole protocol on a CUDA device: shipped kernels are right, wrong ones are found.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import built_in_tasks, catalog_folder, load_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import ShippedKernel, Task
from gpu_runner.data.verdict import Direction, Language, Mode, Verdict
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.tools.anchor import probe_ncu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

HEAD = """
#include <cuda_runtime.h>
#include <cstdio>
#include <cmath>
__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}
__global__ void spin() { for (;;) asm volatile(""); }
__global__ void store(float* to, float value) { *to = value; }
__global__ void fill(float* to, float value, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) to[i] = value;
}
__global__ void chatter() { printf("flood flood flood flood flood\\n"); }
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
"""
ADD = "add<<<(N + 255) / 256, 256>>>(A, B, C, N);"

BAD_BODIES = {
    "nan": ("fill<<<(N + 255) / 256, 256>>>(C, NAN, N);", Verdict.WRONG_RESULT, "nan"),
    "nothing": ("", Verdict.WRONG_RESULT, "wrong"),
    "drops the tail": ("add<<<(N + 255) / 256, 256>>>(A, B, C, N - 1);", Verdict.WRONG_RESULT, ""),
    "illegal address": ("store<<<1, 1>>>((float*)8, 1);", Verdict.RUNTIME_ERROR, "illegal"),
    "host pointer": ("float x; store<<<1, 1>>>(&x, 1);", Verdict.RUNTIME_ERROR, "cuda"),
    "bad launch": ("add<<<1, 4096>>>(A, B, C, N);", Verdict.RUNTIME_ERROR, "invalid"),
    "endless kernel": ("spin<<<1, 1>>>();" + ADD, Verdict.TIME_LIMIT, "within"),
    "host segfault": ("*(volatile int*)8 = 1;", Verdict.RUNTIME_ERROR, "segmentation fault"),
    "device out of memory": (
        "void* p; if (cudaMalloc(&p, 1ull << 42)) return;",
        Verdict.MEMORY_LIMIT,
        "memory",
    ),
    "writes behind": (ADD + "store<<<1, 1>>>(C + N, 1);", Verdict.VIOLATION, "behind"),
    "writes before": (ADD + "store<<<1, 1>>>(C - 1, 1);", Verdict.VIOLATION, "before"),
    "writes to an input": (
        ADD + "store<<<1, 1>>>((float*)A, 123);",
        Verdict.VIOLATION,
        "'A'",
    ),
}

TORCH_HEAD = """
#include <torch/extension.h>
torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  auto y = torch::relu(torch::addmm(bias, x, weight.t()));
"""
TORCH_TAIL = '}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }\n'
TORCH_BODIES = {
    "right": ("return y;", Verdict.CORRECT),
    "flat": ("return y.flatten();", Verdict.WRONG_SHAPE),
    "half": ("return y.to(torch::kHalf);", Verdict.WRONG_DTYPE),
    "transposed strides": ("return y.t().contiguous().t();", Verdict.WRONG_SHAPE),
    "changes an input": ("x.zero_(); return y;", Verdict.VIOLATION),
    "throws": ('TORCH_CHECK(false, "no"); return y;', Verdict.RUNTIME_ERROR),
    "tf32": (
        "at::globalContext().setAllowTF32CuBLAS(true);"
        " return torch::relu(torch::addmm(bias, x, weight.t()));",
        Verdict.WRONG_RESULT,
    ),
}


@pytest.fixture(scope="module")
def config(config: SupervisorConfig) -> SupervisorConfig:
    return replace(config, call_timeout_s=8.0)


def run(
    task: Task,
    source: str,
    config: SupervisorConfig,
    mode: Mode = Mode.TEST,
    direction: Direction = Direction.FORWARD,
) -> EvaluationResult:
    solution = Solution(source=source, language=Language.CUDA, direction=direction)
    request = EvaluationRequest(
        evaluation_id="gpu", task=task, solution=solution, mode=mode, device=config.device
    )
    return evaluate(request, config)


def torch_source(name: str) -> str:
    return f"{TORCH_HEAD}{TORCH_BODIES[name][0]}\n{TORCH_TAIL}"


def shipped() -> list[ParameterSet]:
    return [
        pytest.param(task, kernel, id=f"{task.name}-{Path(kernel.path).stem}")
        for task in built_in_tasks()
        for kernel in task.kernels
        if kernel.language is Language.CUDA
    ]


@pytest.fixture(scope="module", autouse=True)
def _built(request: pytest.FixtureRequest, config: SupervisorConfig) -> None:
    """Compile what this session is going to measure, side by side, before the first measurement."""
    chosen = {item.name for item in request.session.items}
    linear = load_task(catalog_folder() / "linear_relu")
    sources = [
        (linear, torch_source(name), Direction.FORWARD)
        for name in TORCH_BODIES
        if f"test_torch_extension_gets_its_verdict[{name}]" in chosen
    ]
    for parameters in shipped():
        if f"test_shipped_kernel_is_correct[{parameters.id}]" in chosen:
            task, kernel = parameters.values
            sources.append((task, task.files[kernel.path], kernel.direction))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        list(pool.map(lambda s: run(s[0], s[1], config, Mode.COMPILE, s[2]), sources))


@pytest.mark.parametrize(("task", "kernel"), shipped())
def test_shipped_kernel_is_correct(
    task: Task, kernel: ShippedKernel, config: SupervisorConfig
) -> None:
    result = run(task, task.files[kernel.path], config, Mode.QUICK, kernel.direction)
    right = result.verdict in (Verdict.CORRECT, Verdict.UNSTABLE)  # some kernels' times vary
    assert right, f"{result.reason} {result.mismatch} {result.log}"


PROFILED = [
    ("softmax", "kernels/good.cu", "softmax_registers"),
    ("layernorm", "kernels/good.cu", "normalise"),  # a torch extension
]


@pytest.mark.parametrize(("name", "path", "kernel"), PROFILED, ids=[p[0] for p in PROFILED])
def test_profile_has_counters_where_ncu_works_and_rates_elsewhere(
    name: str, path: str, kernel: str, config: SupervisorConfig
) -> None:
    task = load_task(catalog_folder() / name)
    result = run(task, task.files[path], config, Mode.PROFILE)
    profile, build = result.profile, result.build
    assert profile is not None, result.reason + result.log
    assert build is not None
    assert any(kernel in found.name for found in build.resources)
    assert all(found.registers > 0 for found in build.resources)
    assert any(kernel in found.name for found in profile.kernels)
    reason = probe_ncu(config)
    assert (profile.tool, profile.reason) == (("portable", reason) if reason else ("ncu", ""))
    if not reason:
        assert profile.metrics["kernel_duration_ns"] == pytest.approx(
            profile.metrics["latency_ns"], rel=0.5
        )
        assert {"achieved_occupancy_pct", "l2_hit_rate_pct"} <= profile.metrics.keys()
        assert any(key.startswith("stall_") for key in profile.metrics)


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_kernel_gets_its_verdict(name: str, config: SupervisorConfig) -> None:
    body, verdict, words = BAD_BODIES[name]
    task = load_task(catalog_folder() / "vector_add")
    result = run(task, f"{HEAD}{body}\n}}\n", config)
    assert result.verdict is verdict, result.reason + result.log
    assert words in (result.reason + str(result.mismatch)).lower() or words in result.reason


def test_flood_from_the_device_harms_nobody(config: SupervisorConfig) -> None:
    task = load_task(catalog_folder() / "vector_add")
    result = run(task, f"{HEAD}chatter<<<256, 256>>>();{ADD}\n}}\n", config)
    assert result.verdict is Verdict.CORRECT, result.reason
    assert len(result.output) <= 64 * 1024


@pytest.mark.parametrize("name", TORCH_BODIES)
def test_torch_extension_gets_its_verdict(name: str, config: SupervisorConfig) -> None:
    verdict = TORCH_BODIES[name][1]
    task = load_task(catalog_folder() / "linear_relu")
    result = run(task, torch_source(name), config)
    assert result.verdict is verdict, result.reason + result.log


def test_nothing_is_left_running(config: SupervisorConfig) -> None:
    left = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = path.read_bytes().decode(errors="replace")
            if str(config.cache_folder) in command or "gpu_runner.engine" in command:
                left.append(command)
    assert left == []
