"""Who did the work is seen by what ran, and honest kernels that use torch or numba are let be."""

from __future__ import annotations

import dataclasses
import importlib.util

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.integrity import Check
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

PACKS = r"""
#include <torch/extension.h>

torch::Tensor forward(torch::Tensor x, torch::Tensor weights, torch::Tensor biases) {
    auto packed = torch::cat({weights, biases.unsqueeze(1)}, 1).contiguous();
    const auto m = x.size(0), k = x.size(1), n = weights.size(0);
    auto out = torch::empty({m, n}, x.options());
    const float *px = x.data_ptr<float>(), *pw = packed.data_ptr<float>();
    float* po = out.data_ptr<float>();
    at::parallel_for(0, m, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i)
            for (int64_t j = 0; j < n; ++j) {
                const float* row = pw + j * (k + 1);
                double sum = row[k];
                for (int64_t l = 0; l < k; ++l) sum += (double)px[i * k + l] * row[l];
                po[i * n + j] = sum > 0 ? (float)sum : 0.f;
            }
    });
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
"""
CALLS_ATEN = r"""
#include <torch/extension.h>

torch::Tensor forward(torch::Tensor x, torch::Tensor weights, torch::Tensor biases) {
    return at::addmm(biases, x, weights.t()).clamp_min(0);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
"""
NUMBA = """
import math
import numpy as np
import torch
from numba import njit, prange

@njit(parallel=True, fastmath={"contract", "reassoc"}, cache=True, nogil=True)
def rows(x, out):
    for i in prange(x.shape[0]):
        top = x[i].max()
        total = 0.0
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] = out[i, j] / total

def forward(input, N, C):
    out = np.empty((N, C), np.float32)
    rows(input.numpy(), out)
    return torch.from_numpy(out)
"""


def evaluated(
    name: str, source: str, language: Language, config: SupervisorConfig, oracles: Oracles
) -> EvaluationResult:
    request = EvaluationRequest(
        evaluation_id="test",
        task=dataclasses.replace(find_task(name), baselines=()),
        solution=Solution(source=source, language=language),
        mode=Mode.QUICK,
        device="cpu",
    )
    result = evaluate(request, config, oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason
    return result


@pytest.mark.thorough(reason="the compiler takes a minute with torch's headers")
def test_packing_operands_and_parallel_loops_are_no_librarys_work(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    result = evaluated("linear_relu", PACKS, Language.CPP, config, oracles)
    assert result.suspicions == ()
    assert result.environment.work.libraries == {}
    assert result.environment.work.own > 0


@pytest.mark.thorough(reason="the compiler takes a minute with torch's headers")
def test_what_ran_holds_back_and_what_the_library_needs_is_a_hint(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    result = evaluated("linear_relu", CALLS_ATEN, Language.CPP, config, oracles)
    assert {each.check for each in result.suspicions} == {Check.WORK}
    assert "aten::addmm" in result.suspicions[0].reason
    assert all("torch-library" in each.reason for each in result.hints)
    assert result.hints


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
def test_loops_that_numba_compiled_are_the_authors(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    result = evaluated("softmax", NUMBA, Language.PYTHON, config, oracles)
    assert {each.check for each in result.suspicions} <= {Check.CLOCK, Check.LUCK}
    assert result.environment.work.libraries == {}
