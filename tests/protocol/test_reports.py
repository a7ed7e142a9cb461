"""Reports that other projects of this field got from their users, each as a kernel that runs here.

`docs/reports.md` lists all fifteen, and where the others are tried.
"""

from __future__ import annotations

import pytest

from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from tests.protocol.evaluating import evaluated, needs_jail

pytestmark = needs_jail
ADD = 'extern "C" void vector_add(const float* A, const float* B, float* C, int N)'


TIMES = 'extern "C" void matrix_vector_mul(const float* A, const float* x, float* y, int M, int N)'
TREE = """
static float sum(const float* a, const float* x, int n) {
  if (n <= 4) {
    float s = 0;
    for (int i = 0; i < n; ++i) s += a[i] * x[i];
    return s;
  }
  return sum(a, x, n / 2) + sum(a + n / 2, x + n / 2, n - n / 2);
}
"""
KERNELS = {
    "3, a tree of sums at large values": (
        "matrix_vector_mul",
        f"{TREE}{TIMES} {{ for (int i = 0; i < M; ++i) y[i] = sum(A + (long)i * N, x, N); }}",
        Verdict.CORRECT,
    ),
    "13, vectors of four drop the tail": (
        "vector_add",
        f"{ADD} {{ for (int i = 0; i < N / 4 * 4; ++i) C[i] = A[i] + B[i]; }}",
        Verdict.WRONG_RESULT,
    ),
    "16, Greek letters and the line ends of Windows": (
        "vector_add",
        f"// \u2202C/\u2202A = 1\r\n{ADD} {{\r\n for (int i = 0; i < N; ++i)\r\n"
        " C[i] = A[i] + B[i];\r\n}\r\n",
        Verdict.CORRECT,
    ),
    "17, words that some ban": (
        "vector_add",
        f"/* upstream, time, open, fork */ {ADD} {{ int stream = 0, read = N, clock = 1;"
        " for (; stream < read; stream += clock) C[stream] = A[stream] + B[stream]; }",
        Verdict.CORRECT,
    ),
    "18, one NaN among many": (
        "vector_add",
        f"#include <cmath>\n{ADD} {{ for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];"
        " C[N / 2] = NAN; }",
        Verdict.WRONG_RESULT,
    ),
    "19, loads of 32 bytes at once": (
        "vector_add",
        f"#include <cstdint>\n#include <cstdlib>\n{ADD} {{"
        " if (((uintptr_t)A | (uintptr_t)B | (uintptr_t)C) % 256) abort();"
        " for (int i = 0; i < N; ++i) C[i] = A[i] + B[i]; }",
        Verdict.CORRECT,
    ),
}


@pytest.mark.parametrize("report", KERNELS)
def test_a_reported_kernel_ends_as_it_should(
    report: str, config: SupervisorConfig, oracles: Oracles
) -> None:
    task, source, verdict = KERNELS[report]
    result = evaluated(config, task, source, oracles=oracles)
    assert result.verdict is verdict, result.reason + result.log
    assert result.suspicions == ()


def test_8_each_body_is_judged_by_its_own_build(config: SupervisorConfig, oracles: Oracles) -> None:
    """Two sources of one name and length, one after the other: a cache by name confuses them."""
    right = f"{ADD} {{ for (int i = 0; i < N; ++i) C[i] = A[i] + B[i]; }}"
    wrong = right.replace("A[i] + B[i]", "A[i] - B[i]")
    sources = right, wrong, right
    verdicts = [evaluated(config, "vector_add", s, oracles=oracles).verdict for s in sources]
    assert verdicts == [Verdict.CORRECT, Verdict.WRONG_RESULT, Verdict.CORRECT]
