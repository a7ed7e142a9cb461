"""Python modules on a CUDA device: Triton and CUDA by load_inline, as functions and as ModelNew."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import DeviceKind, Language, Mode, Verdict
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.evaluate import evaluate
from tests.bench.evaluations import make_config

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)

TRITON = """
import torch
import triton
import triton.language as tl

@triton.autotune([triton.Config({}, num_warps=n) for n in (4, 8)], key=["C"])
@triton.jit
def softmax(out, x, C, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * C + at, mask=at < C, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * C + at, e / tl.sum(e, 0), mask=at < C)

def forward(input, N, C):
    out = torch.empty_like(input)
    softmax[(N,)](out, input, C, BLOCK=triton.next_power_of_2(C))
    return out
"""
AT_IMPORT = TRITON + "\nDEVICE = torch.cuda.get_device_properties(0)\n"
INLINE = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  int n = a.numel();
  add<<<(n + 255) / 256, 256>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
"""
own = load_inline("own_add", "torch::Tensor run(torch::Tensor a, torch::Tensor b);", CUDA,
                  functions=["run"])

def forward(A, B, N):
    return own.run(A, B)
'''
WRONG_TRITON = TRITON.replace("tl.exp(v - tl.max(v, 0))", "tl.no_such_function(v)")
HOSTILE_STREAM = """
import torch

side = torch.cuda.Stream()

def forward(A, B, N):
    out = torch.empty_like(A)
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        torch.add(A, B, out=out)
    return out
"""


def evaluated(task: str, source: str, folder: Path, mode: Mode = Mode.QUICK) -> EvaluationResult:
    config = make_config(DeviceKind.CUDA, folder)
    request = EvaluationRequest(
        evaluation_id="module",
        task=find_task(task),
        solution=Solution(source=source, language=Language.PYTHON),
        mode=mode,
        device=config.device,
    )
    return evaluate(request, config)


@needs_triton
@pytest.mark.parametrize("source", [TRITON, AT_IMPORT], ids=["plain", "looks at the GPU"])
def test_triton_is_tuned_before_it_is_measured(tmp_path: Path, source: str) -> None:
    result = evaluated("softmax", source, tmp_path, Mode.RANKED)
    assert result.verdict is Verdict.CORRECT, f"{result.reason}\n{result.output}{result.log}"
    assert result.suspicions == ()


@needs_triton
def test_triton_that_does_not_compile_says_so(tmp_path: Path) -> None:
    result = evaluated("softmax", WRONG_TRITON, tmp_path)
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert "no_such_function" in result.reason


def test_cuda_by_load_inline(tmp_path: Path) -> None:
    result = evaluated("vector_add", INLINE, tmp_path, Mode.RANKED)
    assert result.verdict is Verdict.CORRECT, f"{result.reason}\n{result.output}{result.log}"
    assert result.suspicions == ()


def test_work_on_another_stream_gains_nothing(tmp_path: Path) -> None:
    result = evaluated("vector_add", HOSTILE_STREAM, tmp_path)
    assert result.verdict is not Verdict.CORRECT or result.suspicions
