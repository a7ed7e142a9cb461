"""A wrong kernel hears what its output looks like: whole evaluations, a mistake each."""

from __future__ import annotations

import pytest

from gpu_runner.data.evaluation import EvaluationResult, Mismatch
from gpu_runner.data.symptom import GENERAL, Finding, Symptom
from gpu_runner.data.task import KINDS_OF_VALUES, WAYS_TO_TRY, Values
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.record import Record, wrong_on_other_values
from gpu_runner.supervisor.runner.pool import Oracles
from tests.protocol.evaluating import evaluated, needs_jail, request

HEADS = {
    "vector_add": "void vector_add(const float* A, const float* B, float* C, int N)",
    "dot_product": "void dot_product(float* loss, const float* X, const float* Y, const int N)",
    "softmax": "void softmax(float* out, const float* input, int N, int C)",
    "matrix_mul": "void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K)",
}
INCLUDES = """
#include <cmath>
#include <cstdint>
#include <cstring>
static float cut(float value, unsigned bits) {  // keeps what a narrower number has
  uint32_t word;
  memcpy(&word, &value, 4);
  word = (word + (1u << (bits - 1))) >> bits << bits;
  memcpy(&value, &word, 4);
  return value;
}
"""
PRODUCT = """
for (long i = 0; i < M; ++i)
  for (long j = 0; j < N; ++j) {{
    float sum = 0;
    for (long k = 0; k < {depth}; ++k) sum += {a} * {b};
    C[i * N + j] = sum;
  }}
"""


def product(depth: str = "K", a: str = "A[i * K + k]", b: str = "B[k * N + j]") -> str:
    return PRODUCT.format(depth=depth, a=a, b=b)


KERNELS = {
    "added to what was never set": (
        "dot_product",
        "for (int i = 0; i < N; ++i) loss[0] += X[i] * Y[i];",
        Symptom.NEVER_WRITTEN,
    ),
    "half precision": (
        "vector_add",
        "auto out = (_Float16*)C; for (int i = 0; i < N; ++i) out[i] = A[i] + B[i];",
        Symptom.OTHER_DTYPE,
    ),
    "divides zero by zero": (
        "softmax",
        "for (long i = 0; i < (long)N * C; ++i) { float zero = input[i] - input[i];"
        " out[i] = zero / zero; }",
        Symptom.NOT_A_NUMBER,
    ),
    "half of the sum": ("matrix_mul", product(depth="K / 2"), Symptom.PART_MISSING),
    "BF16": (
        "matrix_mul",
        product(a="cut(A[i * K + k], 16)", b="cut(B[k * N + j], 16)"),
        Symptom.LOWER_PRECISION,
    ),
}


def run(name: str, body: str, config: SupervisorConfig, oracles: Oracles) -> EvaluationResult:
    source = f'{INCLUDES}extern "C" {HEADS[name]} {{\n{body}\n}}\n'
    return evaluated(config, name, source, oracles=oracles)


@needs_jail
@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_kernel_hears_what_it_looks_like(
    name: str, config: SupervisorConfig, oracles: Oracles
) -> None:
    task, body, symptom = KERNELS[name]
    result = run(task, body, config, oracles)
    assert result.verdict is Verdict.WRONG_RESULT, result.reason + result.log
    assert result.mismatch is not None
    assert [each.symptom for each in result.mismatch.findings][:1] == [symptom]
    assert result.reason.endswith(result.mismatch.findings[0].text)
    if symptom is Symptom.LOWER_PRECISION:
        assert name in result.reason


@needs_jail
def test_a_plainly_wrong_kernel_hears_its_error_alone(
    config: SupervisorConfig, oracles: Oracles
) -> None:
    body = "for (int i = 0; i < N; ++i) C[i] = std::sin(1e4f * A[i] + 77 * B[(i * 31L) % N]);"
    result = run("vector_add", body, config, oracles)
    assert result.mismatch is not None
    assert result.mismatch.findings == ()
    assert result.reason.endswith(result.mismatch.reason)


def test_what_is_wrong_on_other_values_is_said_in_kinds_alone() -> None:
    like = Finding(symptom=Symptom.FACTOR, text="wrong values are 1.777 times what was expected")
    wrong = Mismatch(workload="n256", output="C", reason="off by 1777", findings=(like,))
    found = {Values.HEAVY: wrong, Values.LARGE: wrong}
    reason = wrong_on_other_values("n256", found).reason
    assert reason == (
        "correct on n256 with the task's usual values, but wrong with very large values and rows"
        " with a few very large values. With very large values, the output looked like this: all"
        " values are off by the same factor (a scale, or the divisor of a mean). To reproduce it,"
        " multiply the inputs by 1000"
    )
    alone = wrong_on_other_values("n256", {Values.HARD: wrong}).reason
    assert alone.endswith(
        "but wrong with the task's own hard values. The output looked like this: all values are"
        " off by the same factor (a scale, or the divisor of a mean). To reproduce it, draw the"
        " inputs with make_hard_inputs from the task's reference"
    )
    near = wrong_on_other_values("n256", {Values.NEAR: wrong, Values.LARGE: wrong}).reason
    assert near.endswith(
        "To reproduce it, call the kernel twice, and change a few inputs in between"
    )
    assert "777" not in reason
    assert set(KINDS_OF_VALUES) == set(WAYS_TO_TRY) == set(Values)


def test_the_reason_names_the_first_finding(config: SupervisorConfig) -> None:
    findings = tuple(
        Finding(symptom=each, text=GENERAL[each]) for each in (Symptom.SIGN, Symptom.TAIL)
    )
    mismatch = Mismatch(workload="w", output="C", reason="off by 3", findings=findings)
    record = Record(request("vector_add"), config)
    expected = f"'C' is wrong on w: off by 3: {GENERAL[Symptom.SIGN]}"
    assert record.wrong_result(mismatch).reason == expected
