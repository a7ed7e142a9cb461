"""Audits on a CUDA device: what is wrong but looks right is found, honest kernels pass.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.protocol import PLANS
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor import measuring
from gpu_runner.supervisor.audit import sanitizer
from gpu_runner.supervisor.audit.required import CLOCK_CHECK
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.loaded import AUDIT_CHECK
from gpu_runner.supervisor.tools.anchor import probe_ncu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

needs_sanitizer = pytest.mark.skipif(not sanitizer.find(), reason="no compute-sanitizer")

HEAD = """
#include <cuda_runtime.h>
__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}
"""
CALL = 'extern "C" void vector_add(const float* A, const float* B, float* C, int N) {\n'
ADD = "add<<<(N + 255) / 256, 256>>>(A, B, C, N);"

# Each is right as far as its outputs go; what it reads beyond makes no difference to them.
WRONG = {
    "reads behind an input": (
        "__global__ void peek(const float* A, float* C, int N) {"
        " if (A[N] == 12345.678f) C[0] = 1; }\n",
        ADD + "peek<<<1, 1>>>(A, C, N);",
        "memcheck",
        "Invalid __global__ read",
    ),
    "reads shared memory that another warp writes": (
        "__global__ void mix(const float* A, float* C, int N) {"
        " __shared__ float s[256]; s[threadIdx.x] = A[threadIdx.x % N];"
        " if (s[threadIdx.x ^ 64] == 12345.678f) C[0] = 1; }\n",
        ADD + "mix<<<1, 256>>>(A, C, N);",
        "racecheck",
        "Race reported",
    ),
    "reads scratch that nobody wrote": (
        "__global__ void peek(const float* s, float* C) { if (s[3] == 12345.678f) C[0] = 1; }\n",
        ADD + "float* s; cudaMalloc(&s, 4096); peek<<<1, 1>>>(s, C); cudaFree(s);",
        "initcheck",
        "Uninitialized __global__ memory read",
    ),
    "half a warp waits": (
        "__global__ void wait(const float* A, float* C) {"
        " if (threadIdx.x % 2) __syncthreads(); if (A[0] == 12345.678f) C[0] = 1; }\n",
        ADD + "wait<<<1, 64>>>(A, C);",
        "synccheck",
        "Barrier error",
    ),
}

STRANGE_WARP = (
    "__global__ void wait(const float* A, float* C) {"
    " if (threadIdx.x >= 16) __syncwarp(0xffff); if (A[0] == 12345.678f) C[0] = 1; }\n"
)
"""Threads that wait for a part of their warp which they are not of."""

HONEST = [
    ("vector_add", "kernels/good.cu"),
    ("dot_product", "kernels/good.cu"),
    ("softmax", "kernels/good.cu"),
    ("layernorm", "kernels/good.cu"),  # a torch extension
]


@pytest.fixture(autouse=True)
def _few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measurement before an audit is tested elsewhere."""
    monkeypatch.setitem(PLANS, Mode.AUDIT, replace(PLANS[Mode.QUICK], hidden=True))
    monkeypatch.setattr(measuring, "UNSTABLE_FROM", float("inf"))


def audited(name: str, source: str, config: SupervisorConfig) -> EvaluationResult:
    task = load_task(catalog_folder() / name)
    solution = Solution(source=source, language=Language.CUDA)
    request = EvaluationRequest(
        evaluation_id="audit", task=task, solution=solution, mode=Mode.AUDIT, device=config.device
    )
    result = evaluate(request, config)
    print(result.verdict, result.reason)
    for check in result.audit.checks if result.audit else ():
        print(f"{check.name:10} {check.state:10} {check.duration_s:5.1f} s  {check.reason}")
    return result


def checks_of(result: EvaluationResult) -> dict[str, AuditCheck]:
    assert result.audit is not None, result.reason + result.log
    return {check.name: check for check in result.audit.checks}


@needs_sanitizer
@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_difference_is_found(name: str, config: SupervisorConfig) -> None:
    head, body, check, words = WRONG[name]
    result = audited("vector_add", f"{HEAD}{head}{CALL}{body}\n}}\n", config)
    found = checks_of(result)[check]
    assert found.state is AuditState.FAILED, found
    assert words in found.reason
    assert "kernel.cu:" in found.reason
    assert result.verdict is Verdict.VIOLATION
    assert found.reason in result.reason


def test_what_the_hardware_does_not_let_pass(config: SupervisorConfig) -> None:
    source = f"{HEAD}{STRANGE_WARP}{CALL}{ADD}wait<<<1, 32>>>(A, C);\n}}\n"
    result = audited("vector_add", source, config)
    assert result.verdict in (Verdict.RUNTIME_ERROR, Verdict.VIOLATION)
    assert "illegal instruction" in result.reason or "Barrier error" in result.reason


@pytest.mark.parametrize(("name", "path"), HONEST, ids=[name for name, _ in HONEST])
def test_honest_kernel_passes(name: str, path: str, config: SupervisorConfig) -> None:
    task = load_task(catalog_folder() / name)
    result = audited(name, task.files[path], config)
    states = {check.name: check.state for check in checks_of(result).values()}
    for other in (
        CLOCK_CHECK,
        AUDIT_CHECK,
    ):  # few calls may not tell, and no ranked result is there
        del states[other]
    expected = dict.fromkeys(sanitizer.TOOLS, _state(bool(sanitizer.find())))
    expected |= dict.fromkeys(("kernels", "time"), _state(not probe_ncu(config)))
    assert states == expected
    assert result.verdict in (Verdict.CORRECT, Verdict.UNSTABLE), result.reason
    assert not [s for s in result.suspicions if s.check == "audit"]
    if not probe_ncu(config):
        assert result.audit is not None
        assert result.audit.kernels


def _state(there: bool) -> AuditState:
    return AuditState.PASSED if there else AuditState.SKIPPED
