"""What an audit tells of kernels that are all right: facts, on a CPU."""

from __future__ import annotations

import time

import pytest

from gpu_runner.data.facts import NAMES, Facts
from gpu_runner.data.protocol import PLANS
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor import measuring
from gpu_runner.supervisor.audit.audit import Auditor
from gpu_runner.supervisor.audit.facts import EXACT_BYTES
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from tests.protocol.evaluating import evaluated, needs_jail, only

pytestmark = needs_jail

TASK = only("dot_product", "cpu_n65536")
HEAD = """
#include <cstring>
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  float total = 0;
"""
PLAIN = HEAD + "for (int i = 0; i < N; ++i) total += X[i] * Y[i]; loss[0] = total; }"
"""Always the same order of additions, and no memory."""

ORDERED_BY_CHANCE = (
    HEAD
    + "int first = __builtin_ia32_rdtsc() % N;"
    + "for (int i = 0; i < N; ++i) total += X[(first + i) % N] * Y[(first + i) % N];"
    + "loss[0] = total; }"
)
BYTES = 8 << 20
GREEDY = PLAIN.replace(
    "float total = 0;",
    f"float total = 0; char* s = new char[{BYTES}]; std::memset(s, 1, {BYTES});"
    f'asm volatile("" : : "r"(s) : "memory"); delete[] s;',
)
PYTHON = """
import torch

def forward(X, Y, N):
    order = ORDER
    return (X[order] * Y[order]).sum().reshape(1)
"""


@pytest.fixture(autouse=True)
def _only_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before them in an audit is tested elsewhere."""
    monkeypatch.setitem(PLANS, Mode.AUDIT, PLANS[Mode.TEST])
    monkeypatch.setattr(measuring, "UNSTABLE_FROM", float("inf"))
    monkeypatch.setattr(Auditor, "_sanitizers", lambda self: iter(()))


def facts(
    config: SupervisorConfig, oracles: Oracles, source: str, language: Language = Language.CPP
) -> Facts:
    result = evaluated(config, TASK, source, Mode.AUDIT, language, oracles=oracles)
    assert result.verdict is Verdict.CORRECT, result.reason + result.log
    assert result.audit is not None
    assert result.audit.facts is not None
    print(result.audit.facts)
    return result.audit.facts


def test_a_kernel_with_one_order_gives_the_same_bits(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    found = facts(config, oracles, PLAIN)
    assert found.same_bits is True
    assert found.scratch_bytes == 0
    assert found.graph is None
    assert found.workload == "cpu_n65536"
    assert set(found.said) == set(NAMES)


def test_a_kernel_whose_order_is_left_to_chance_does_not(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    found = facts(config, oracles, ORDERED_BY_CHANCE)
    assert found.same_bits is False
    assert "cpu_n65536" in found.said["same_bits"]


def test_memory_that_a_call_takes_is_seen_from_outside(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    taken = facts(config, oracles, GREEDY).scratch_bytes
    assert taken is not None
    assert abs(taken - BYTES) <= 2 * EXACT_BYTES


BY_BATCH = """
extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
  const int step = STEP;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float total = 0;
      for (int first = 0; first < step; ++first)
        for (int k = first; k < K; k += step) total += A[i * K + k] * B[k * N + j];
      C[i * N + j] = total;
    }
}
"""


@pytest.mark.parametrize(("step", "same"), [("4", True), ("M > 16 ? 1 : 2", False)])
def test_an_order_that_depends_on_the_batch_is_found(
    step: str, same: bool, config: SupervisorConfig, oracles: Oracles
) -> None:
    task = only("matrix_mul", "cpu_m64_n64_k64")
    source = BY_BATCH.replace("STEP", step)
    result = evaluated(config, task, source, Mode.AUDIT, oracles=oracles)
    assert result.audit is not None, result.reason + result.log
    assert result.audit.facts is not None
    assert result.audit.facts.batch_bits is same, result.audit.facts.said
    assert result.audit.facts.same_bits is True


@pytest.mark.parametrize(
    ("order", "same"), [("torch.arange(len(X))", True), ("torch.randperm(len(X))", False)]
)
def test_python_has_facts_too(
    order: str, same: bool, config: SupervisorConfig, oracles: Oracles
) -> None:
    found = facts(config, oracles, PYTHON.replace("ORDER", order), Language.PYTHON)
    assert found.same_bits is same
    assert found.scratch_bytes is not None


def test_energy_is_that_of_the_device_over_half_a_second(
    config: SupervisorConfig, oracles: Oracles, monkeypatch: pytest.MonkeyPatch
) -> None:
    watts, step_s = 40.0, 0.01
    monkeypatch.setattr(
        "gpu_runner.supervisor.audit.facts.counter",
        lambda config: lambda: watts * (time.monotonic() // step_s) * step_s,
    )
    found = facts(config, oracles, PLAIN)
    assert found.energy_joules is not None
    assert 0 < found.energy_joules < watts * 0.01
    assert found.energy_error is not None
    assert found.energy_error < 0.1
