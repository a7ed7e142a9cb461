"""A kernel that was not launched is a RUNTIME_ERROR in CUDA's words, also where nobody hears of it.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Abi, DeviceKind, Language, Mode, Verdict
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import cuda_architecture, cuda_devices
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

KERNELS = """
#include <cuda_runtime.h>
__global__ void copy(const float* from, float* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
// Holds more than a quarter of the registers that 1,024 threads could have.
__global__ void greedy(const float* from, float* to, int n) {
  float held[160];
#pragma unroll
  for (int i = 0; i < 160; ++i) held[i] = from[(threadIdx.x + 32 * i) % n];
#pragma unroll 1
  for (int round = 0; round < n; ++round) {
#pragma unroll
    for (int i = 0; i < 160; ++i) held[i] = held[i] * held[(i + 7) % 160] + round;
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 160; ++i) sum += held[i];
  to[threadIdx.x % n] = sum;
}
"""
C_SOURCE = """
__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  const float* from = A;
  float* to = C;
  int n = N;
"""
C_RIGHT = "add<<<(N + 255) / 256, 256>>>(A, B, C, N);"
TORCH_SOURCE = """
#include <torch/extension.h>
torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  auto right = torch::relu(torch::addmm(bias, x, weight.t()));
  auto y = torch::empty_like(right);
  const float* from = right.data_ptr<float>();
  float* to = y.data_ptr<float>();
  int n = static_cast<int>(y.numel());
"""
TORCH_RIGHT = "copy<<<(n + 255) / 256, 256>>>(from, to, n);"
TORCH_END = (
    'return y;\n}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }\n'
)

INVALID = "cudaErrorInvalid"  # Configuration or Value: that differs between runtimes
ASK = "cudaGetLastError();"  # and so clear it
LAUNCHES = {
    "too many threads": ("copy<<<1, 1500>>>(from, to, n);", INVALID),
    "no block": ("copy<<<0, 256>>>(from, to, n);", INVALID),
    "too many registers": (
        "greedy<<<1, 1024>>>(from, to, n);",
        "cudaErrorLaunchOutOfResources: too many resources requested for launch",
    ),
    "too much shared memory": (
        "copy<<<1, 32, 400 << 10>>>(from, to, n);",
        "cudaErrorInvalidValue: invalid argument",
    ),
    "a function": (
        "void* arguments[] = {&from, &to, &n};"
        "cudaLaunchKernel((const void*)copy, dim3(1), dim3(1500), arguments, 0, 0);",
        INVALID,
    ),
    "cooperative": (
        "void* arguments[] = {&from, &to, &n};"
        "cudaLaunchCooperativeKernel((const void*)copy, dim3(1 << 20), dim3(256), arguments);",
        "cudaErrorCooperativeLaunchTooLarge",
    ),
    "configured": (
        "cudaLaunchConfig_t config{}; config.gridDim = 1; config.blockDim = 1500;"
        "cudaLaunchKernelEx(&config, copy, from, to, n);",
        INVALID,
    ),
    "not in the first call": (
        "static int calls = 0; if (calls++ > 1) copy<<<1, 1500>>>(from, to, n); else {RIGHT}",
        INVALID,
    ),
    "before one that is": (
        "copy<<<1, 1500>>>(from, to, n); cudaGetLastError(); {RIGHT}",
        INVALID,
    ),
}
CASES = [
    *((Abi.C, name, end) for name in LAUNCHES for end in (ASK, "")),
    *((Abi.TORCH, name, ASK) for name in LAUNCHES if name not in ("no block", "a function")),
    (Abi.TORCH, "too many threads", ""),
]
HONEST = {
    "asks": "{RIGHT} cudaGetLastError();",
    "asks for too much first": (
        "if (cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, 400 << 10)"
        " != cudaSuccess) cudaGetLastError(); {RIGHT}"
    ),
}


@pytest.fixture(scope="module")
def config(config: SupervisorConfig) -> SupervisorConfig:
    return replace(config, call_timeout_s=8.0)


@pytest.fixture(scope="module", autouse=True)
def _built(config: SupervisorConfig) -> None:
    """Compile the torch extensions, which take long, side by side."""
    bodies = [LAUNCHES[name][0] + end for abi, name, end in CASES if abi is Abi.TORCH]
    bodies += HONEST.values()
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        list(pool.map(lambda body: run(Abi.TORCH, body, config, Mode.COMPILE), bodies))


def run(abi: Abi, body: str, config: SupervisorConfig, mode: Mode = Mode.TEST) -> EvaluationResult:
    if abi is Abi.C:
        name = "vector_add"
        source = f"{KERNELS}{C_SOURCE}{body.replace('{RIGHT}', C_RIGHT)}\n}}\n"
    else:
        name = "linear_relu"
        source = f"{KERNELS}{TORCH_SOURCE}{body.replace('{RIGHT}', TORCH_RIGHT)}\n{TORCH_END}"
    request = EvaluationRequest(
        evaluation_id="gpu",
        task=load_task(catalog_folder() / name),
        solution=Solution(source=source, language=Language.CUDA),
        mode=mode,
        device=config.device,
    )
    return evaluate(request, config)


@pytest.mark.parametrize(("abi", "name", "end"), CASES)
def test_a_launch_that_never_ran_is_a_runtime_error(
    abi: Abi, name: str, end: str, config: SupervisorConfig
) -> None:
    body, words = LAUNCHES[name]
    result = run(abi, body + end, config)
    assert result.verdict is Verdict.RUNTIME_ERROR, result.reason + result.log
    assert "a kernel was not launched" in result.reason
    assert words in result.reason


@pytest.mark.parametrize("abi", [Abi.C, Abi.TORCH])
def test_an_image_for_another_device_is_said_to_be_one(
    abi: Abi, config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, flags = cuda_architecture(0), toolchain.flags
    other = "sm_120" if own != "sm_120" else "sm_90"

    def of_another(kind: DeviceKind, which: Abi, _: str, *more: Any, **named: Any) -> list[str]:
        return flags(kind, which, other, *more, **named)

    monkeypatch.setattr(toolchain, "flags", of_another)
    result = run(abi, "{RIGHT}" + ASK, config)
    assert result.verdict is Verdict.RUNTIME_ERROR, result.reason + result.log
    assert "cudaErrorNoKernelImageForDevice: no kernel image" in result.reason


@pytest.mark.parametrize("abi", [Abi.C, Abi.TORCH])
@pytest.mark.parametrize("name", HONEST)
def test_who_asks_for_errors_of_launches_that_ran_is_correct(
    name: str, abi: Abi, config: SupervisorConfig
) -> None:
    result = run(abi, HONEST[name], config)
    assert result.verdict is Verdict.CORRECT, result.reason + result.log
