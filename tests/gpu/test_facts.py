"""Facts about a kernel's use on a CUDA device: bits, CUDA graph, scratch memory and energy.

On a GPU host without the site's packages:
`python -m pytest -c /dev/null --rootdir . tests/gpu/test_facts.py`.
"""

from __future__ import annotations

import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.facts import Facts
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.protocol import PLANS
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor import measuring
from gpu_runner.supervisor.audit.audit import Auditor
from gpu_runner.supervisor.audit.listed import Lister, Profiled
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

HEAD = """
#include <cuda_runtime.h>
__global__ void dot(float* loss, const float* X, const float* Y, int N) {
  float total = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
    total += X[i] * Y[i];
  atomicAdd(loss, total);
}
__global__ void one_block(float* loss, const float* X, const float* Y, int N) {
  __shared__ float sums[1024];
  float total = 0;
  for (int i = threadIdx.x; i < N; i += 1024) total += X[i] * Y[i];
  sums[threadIdx.x] = total;
  for (int half = 512; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) loss[0] = sums[0];
}
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
"""
PLAIN = HEAD + "one_block<<<1, 1024>>>(loss, X, Y, N);\n}\n"
ATOMIC = HEAD + "cudaMemsetAsync(loss, 0, 4); dot<<<256, 256>>>(loss, X, Y, N);\n}\n"
WAITING = PLAIN.replace("(loss, X, Y, N);\n}", "(loss, X, Y, N); cudaDeviceSynchronize();\n}")
BYTES = 24 << 20
GREEDY = PLAIN.replace(
    "one_block<<<", f"void* s; cudaMallocAsync(&s, {BYTES}, 0); cudaFreeAsync(s, 0);\none_block<<<"
)
PYTHON = """
import torch

def forward(X, Y, N):
    products = X * Y
    return MORE.reshape(1)
"""


@pytest.fixture(autouse=True)
def _only_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before them in an audit is tested elsewhere."""
    monkeypatch.setitem(PLANS, Mode.AUDIT, PLANS[Mode.TEST])
    monkeypatch.setattr(measuring, "UNSTABLE_FROM", float("inf"))
    monkeypatch.setattr(Auditor, "_sanitizers", lambda self: iter(()))
    monkeypatch.setattr(Lister, "profiled", lambda self: Profiled([]))


BY_BATCH = """
#include <cuda_runtime.h>
__global__ void product(const float* A, const float* B, float* C, int M, int N, int K, int step) {
  for (long at = blockIdx.x * 256L + threadIdx.x; at < (long)M * N; at += gridDim.x * 256L) {
    float total = 0;
    for (int first = 0; first < step; ++first)
      for (int k = first; k < K; k += step) total += A[at / N * K + k] * B[(long)k * N + at % N];
    C[at] = total;
  }
}
extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
  product<<<1024, 256>>>(A, B, C, M, N, K, STEP);
}
"""


def facts(
    source: str,
    config: SupervisorConfig,
    language: Language = Language.CUDA,
    name: str = "dot_product",
) -> Facts:
    task = load_task(catalog_folder() / name)
    solution = Solution(source=source, language=language)
    request = EvaluationRequest(
        evaluation_id="facts", task=task, solution=solution, mode=Mode.AUDIT, device=config.device
    )
    result = evaluate(request, config)
    assert result.verdict is Verdict.CORRECT, result.reason + result.log
    assert result.audit is not None
    assert result.audit.facts is not None
    print(result.audit.facts)
    return result.audit.facts


def test_a_plain_kernel(config: SupervisorConfig) -> None:
    found = facts(PLAIN, config)
    assert found.same_bits is True
    assert found.graph is True, found.said
    assert found.scratch_bytes == 0
    assert found.energy_joules is not None, found.said
    assert 0 < found.energy_joules < 1
    assert found.energy_error is not None
    assert found.energy_error < 0.3


def test_atomics_differ_and_still_work_in_a_graph(config: SupervisorConfig) -> None:
    found = facts(ATOMIC, config)
    assert found.same_bits is False
    assert found.graph is True, found.said


def test_a_kernel_that_waits_works_in_no_graph(config: SupervisorConfig) -> None:
    found = facts(WAITING, config)
    assert found.same_bits is True
    assert found.graph is False
    assert "captur" in found.said["graph"].lower(), found.said


def test_memory_of_a_call_is_counted(config: SupervisorConfig) -> None:
    assert facts(GREEDY, config).scratch_bytes == BYTES


@pytest.mark.parametrize(("step", "same"), [("2", True), ("M > 16 ? 1 : 2", False)])
def test_an_order_that_depends_on_the_batch_is_found(
    step: str, same: bool, config: SupervisorConfig
) -> None:
    found = facts(BY_BATCH.replace("STEP", step), config, name="matrix_mul")
    assert found.same_bits is True
    assert found.batch_bits is same, found.said


@pytest.mark.parametrize(
    ("more", "graph"),
    [("products.sum()", True), ("torch.tensor(products.sum().item(), device=X.device)", False)],
)
def test_a_python_kernel(more: str, graph: bool, config: SupervisorConfig) -> None:
    found = facts(PYTHON.replace("MORE", more), config, Language.PYTHON)
    assert found.same_bits is True
    assert found.graph is graph, found.said
    assert found.scratch_bytes is not None
    assert 4 << 20 <= found.scratch_bytes < 8 << 20  # the products of 2**20 pairs
    assert found.energy_joules is not None, found.said
