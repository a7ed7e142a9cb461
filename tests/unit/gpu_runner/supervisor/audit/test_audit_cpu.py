"""The C++ sanitizers find what the protocol's own checks cannot, and accuse no honest kernel."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from gpu_runner.data import wire
from gpu_runner.data.formats import find_task
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.protocol import LEAST_TEAM
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Direction, Mode
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.audit.cpu import CpuSanitizers
from gpu_runner.supervisor.audit.under_tool import Ran, Tool, run_under
from gpu_runner.supervisor.build.build import build_shim, build_solution
from gpu_runner.supervisor.host.arena import Arena, extent, place, span_bytes
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.conditions import Arenas, Conditions
from gpu_runner.supervisor.runner.session import Session
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper
from tests.protocol.evaluating import needs_jail, request

pytestmark = needs_jail

TASK = find_task("vector_add")
WORKLOADS = [Workload(name="odd", parameters={"N": 1001})]
HEAD = 'extern "C" void vector_add(const float* A, const float* B, float* C, int N) {\n'
TEAM = Conditions(team=LEAST_TEAM)  # as a bench has under a tool
ADD = "for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];"


class SmallBench:
    """Makes calls with random inputs; nothing is verified."""

    def __init__(self, config: SupervisorConfig) -> None:
        self._config = config

    def run_profiled(self, target: Target, workloads: Sequence[Workload], ncu: Wrapper) -> str:
        [workload] = workloads
        count = workload.parameters["N"]
        size, rng = 4 * count, random.Random(7)
        with ExitStack() as stack:
            inputs, outputs = (stack.enter_context(closing(Arena(name))) for name in ("in", "out"))
            for arena in (inputs, outputs):
                arena.resize(span_bytes([size, size]))
                arena.view[:] = rng.randbytes(len(arena.view))
                arena.seal_size()
            session = stack.enter_context(
                Session(target, Arenas(inputs, outputs), self._config, ncu, TEAM)
            )
            session.ready()
            for number in range(2):
                session.call(call(number, size, count, rng))
            session.end()
            return session.output


def call(number: int, size: int, count: int, rng: random.Random) -> wire.Call:
    read, written = place([size, size], rng), place([size], rng)
    arguments = (
        wire.Argument(ArgumentKind.INPUT, size, input_offset=read[0].offset),
        wire.Argument(ArgumentKind.INPUT, size, input_offset=read[1].offset),
        wire.Argument(ArgumentKind.OUTPUT, size, output_offset=written[0].offset),
        wire.Argument(ArgumentKind.VALUE, value=count),
    )
    return wire.Call(number, arguments, *extent(read), *extent(written))


Look = Callable[..., dict[str, AuditCheck]]


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Look:
    config = SupervisorConfig(cache_folder=tmp_path_factory.getbasetemp() / "audit-cache")
    shim = build_shim(TASK.c_signature, config)

    def run(
        source: str, until: str = "threads", memory_bytes: int = config.memory_bytes
    ) -> dict[str, AuditCheck]:
        bench = SmallBench(replace(config, memory_bytes=memory_bytes))
        asked = request(TASK, source, Mode.AUDIT)
        library = build_solution(asked, config).library
        target = Target(Abi.C, Direction.FORWARD, library, symbol="vector_add", shim=shim)

        def under(target: Target, tool: Callable[[], Tool]) -> list[Ran]:
            return run_under(bench, target, [WORKLOADS], tool)

        found = {}
        for check in CpuSanitizers(asked, config, target, under).checks(lambda words: None):
            found[check.name] = check
            if check.name == until:  # the next ones are built only now
                break
        return found

    return run


BAD = {
    "reads behind an input": (
        "",
        "float last = A[N]; " + ADD + " C[0] += 0 * last;",
        "address",
        "a read of 4 bytes out of bounds, 0 bytes behind 'A', at kernel.cpp:",
    ),
    "reads after free": (
        "#include <cstdlib>\n",
        "float* s = (float*)malloc(64); s[0] = A[0]; free(s); C[0] = s[0];",
        "address",
        "heap-use-after-free, at kernel.cpp:",
    ),
    "indexes past a table": (
        "static int table[2][4];\n",
        ADD + " table[0][N % 4 + 4] = N; C[0] += 0 * table[1][1];",
        "undefined",
        "out of bounds for type",
    ),
    "sums into memory that nobody wrote": (
        "#include <cstdlib>\n",
        "float* s = (float*)malloc(4 * N); for (int i = 0; i < N; ++i) { s[i] += A[i];"
        " C[i] = s[i] + B[i]; } free(s);",
        "leftovers",
        "memory that nobody wrote",
    ),
    "two threads write one place": (
        "#include <thread>\n",
        "float sum = 0; auto add = [&] { for (int i = 0; i < 100; ++i) sum += A[i]; };"
        "std::thread a(add), b(add); a.join(); b.join();" + ADD + "C[0] += 0 * sum;",
        "threads",
        "data race, at kernel.cpp:",
    ),
    "an unguarded sum in a parallel loop": (
        "",
        "float sum = 0;\n#pragma omp parallel for num_threads(2)\n"
        "for (int i = 0; i < N; ++i) { C[i] = A[i] + B[i]; sum += C[i]; }\n C[0] += 0 * sum;",
        "threads",
        "data race",
    ),
}

HONEST = """
#include <immintrin.h>
#include <cstdlib>
#include <thread>
#include <vector>
static float half(const float* a, int from, int to) {
  float sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(2)
  for (int i = from; i < to; ++i) sum += a[i];
  return sum;
}
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  std::vector<float> scratch(N);
  float* zeros = (float*)calloc(N, 4);
  std::thread one([&] { for (int i = 0; i < N / 2; ++i) scratch[i] = A[i]; });
  for (int i = N / 2; i < N; ++i) scratch[i] = A[i];
  one.join();
  float total = half(A, 0, N), most = 0;
  int count = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(dynamic, 64)
    for (int i = 0; i < N; ++i) scratch[i] += B[i];
#pragma omp single
    count = N;
#pragma omp for
    for (int i = 0; i < N; ++i) C[i] = scratch[count - 1 - i] + zeros[i];
#pragma omp critical
    most = most > total ? most : total;
#pragma omp atomic
    count += 1;
  }
#ifdef __AVX2__
  int full = N / 8 * 8;
  __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(N - full),
                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  for (int i = 0; i < full; i += 8)
    _mm256_storeu_ps(C + i, _mm256_add_ps(_mm256_loadu_ps(A + i), _mm256_loadu_ps(B + i)));
  if (full < N)
    _mm256_maskstore_ps(C + full, mask, _mm256_add_ps(_mm256_maskload_ps(A + full, mask),
                                                      _mm256_maskload_ps(B + full, mask)));
#endif
  free(zeros);
}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BAD)
def test_fault_is_found_and_named(name: str, look: Look) -> None:
    head, body, check, words = BAD[name]
    checks = look(f"{head}{HEAD}{body}\n}}\n", until=check)
    assert checks[check].state is AuditState.FAILED, checks
    assert words in checks[check].reason
    others = {other.state for other in checks.values() if other.name != check}
    assert others <= {AuditState.PASSED, AuditState.SKIPPED}, checks


def test_honest_kernel_that_looks_suspicious_passes(look: Look) -> None:
    checks = look(HONEST)
    assert [c.name for c in checks.values()] == ["address", "undefined", "leftovers", "threads"]
    assert {c.state for c in checks.values()} == {AuditState.PASSED}, checks


@pytest.mark.parametrize(
    "condition", ["__CONCAT(__SANITIZE, _ADDRESS__)", "defined(__SANITIZE_ADDRESS__)", "TOOL"]
)
def test_a_kernel_that_is_another_under_a_tool_is_told(condition: str, look: Look) -> None:
    head = "#include <sys/cdefs.h>\n#define TOOL __CONCAT(__SANITIZE_AD, DRESS__)\n"
    body = f"{ADD}\n#if !{condition}\nfloat last = A[N]; C[0] += 0 * last;\n#endif"
    checks = look(f"{head}{HEAD}{body}\n}}\n", until="leftovers")
    assert checks["address"].state is AuditState.SUSPICIOUS
    assert "different code with -fsanitize=address" in checks["address"].reason


def test_a_tool_that_needs_more_memory_than_there_is_accuses_nobody(look: Look) -> None:
    """What was freed stays with the sanitizer for a while; without it the kernel needs 4 MiB."""
    head = "#include <cstdlib>\n#include <cstring>\n"
    again = "for (int i = 0; i < 400; ++i) { char* s = (char*)malloc(1 << 22);"
    body = f"{again} memset(s, N, 1 << 22); C[0] = s[i]; free(s); }}"
    checks = look(f"{head}{HEAD}{body}\n{ADD}\n}}\n", until="leftovers", memory_bytes=48 << 20)
    assert {check.state for check in checks.values()} == {AuditState.INCONCLUSIVE}, checks
    assert all("more memory than this host has" in check.reason for check in checks.values())
