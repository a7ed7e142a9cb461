"""Races are found whatever the processors and the moment; ordered threads are not accused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.protocol import RACE_CALL_NS
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Direction, Mode, Verdict
from gpu_runner.supervisor.audit import cpu
from gpu_runner.supervisor.audit.cpu import RaceSearch
from gpu_runner.supervisor.build.build import build_shim, build_solution
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.target import Target
from tests.protocol.evaluating import needs_jail, request
from tests.unit.gpu_runner.supervisor.audit.test_audit_cpu import SmallBench

pytestmark = needs_jail

TASK = find_task("vector_add")
WORKLOADS = [Workload(name=f"n{n}", parameters={"N": n}) for n in (1001, 20011)]
HEAD = """
#include <omp.h>
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>
"""
SYMBOL = "vector_add"
ADD = "for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];"

RACY = {
    "a sum without its reduction": f"""
double sum = 0;
#pragma omp parallel for
for (int i = 0; i < N; ++i) sum += A[i];
{ADD} C[0] += 0 * sum;""",
    "the same in parallel only where it pays": f"""
double sum = 0;
#pragma omp parallel for if (N > 10000)
for (int i = 0; i < N; ++i) sum += A[i];
{ADD} C[0] += 0 * sum;""",
    "chunks that the first thread could take alone": f"""
double sum = 0;
#pragma omp parallel for schedule(dynamic, 256)
for (int i = 0; i < N; ++i) sum += A[i];
{ADD} C[0] += 0 * sum;""",
    "a phase that does not wait for the one before": """
std::vector<float> copied(N);
#pragma omp parallel
{
#pragma omp for nowait
  for (int i = 0; i < N; ++i) copied[i] = A[i];
#pragma omp for
  for (int i = 0; i < N; ++i) C[N - 1 - i] = copied[N - 1 - i] + B[N - 1 - i] + 0 * copied[i];
}""",
    "sections that depend on each other": """
float factor = 1;
#pragma omp parallel sections
{
#pragma omp section
  { factor = 2; for (int i = 0; i < N / 2; ++i) C[i] = A[i] + B[i]; }
#pragma omp section
  { float known = factor; for (int i = N / 2; i < N; ++i) C[i] = A[i] + B[i] + 0 * known; }
}""",
}

ORDERED = {
    "worksharing with its barriers": """
std::vector<float> own(omp_get_max_threads()), shared(N);
float factor = 0;
int entered = 0, counted = 0;
double sum = 0;
#pragma omp parallel
{
#pragma omp single
  factor = 1;
#pragma omp for schedule(dynamic, 16)
  for (int i = 0; i < N; ++i) shared[i] = factor * A[i];
#pragma omp sections
  {
#pragma omp section
    own[0] = 1;
  }
#pragma omp for schedule(guided) reduction(+ : sum)
  for (int i = 0; i < N; ++i) { C[N - 1 - i] = shared[N - 1 - i] + B[N - 1 - i]; sum += 1; }
  own[omp_get_thread_num()] = 1;
#pragma omp critical
  ++entered;
#pragma omp atomic
  counted += 1;
}
if (sum != N || entered != counted) C[0] = 0;""",
    "64 threads, and a team in a team": """
omp_set_num_threads(64);
omp_set_max_active_levels(2);
#pragma omp parallel for schedule(dynamic, 256)
for (int i = 0; i < N; ++i) C[i] = A[i];
#pragma omp parallel num_threads(2)
{
  int half = omp_get_thread_num(), halves = omp_get_num_threads();
  int to = half + 1 == halves ? N : N / halves * (half + 1);
#pragma omp parallel for num_threads(2)
  for (int i = N / halves * half; i < to; ++i) C[i] += B[i];
}""",
    "threads that take turns by an atomic counter": """
std::atomic<int> next{0};
std::vector<std::thread> threads;
for (int t = 0; t < 4; ++t)
  threads.emplace_back([&] {
    for (int from; (from = next.fetch_add(64)) < N;)
      for (int i = from; i < std::min(N, from + 64); ++i) C[i] = A[i] + B[i];
  });
for (std::thread& thread : threads) thread.join();""",
}

NOT_FOLLOWED = {
    "tasks": """
#pragma omp parallel
#pragma omp single
for (int from = 0; from < N; from += 64) {
#pragma omp task firstprivate(from)
  for (int i = from; i < std::min(N, from + 64); ++i) C[i] = A[i] + B[i];
}""",
    "a flush": """
int ready = 0;
float factor = 0;
#pragma omp parallel
{
  if (omp_get_thread_num() == 0) {
    factor = 1;
#pragma omp flush
#pragma omp atomic write
    ready = 1;
  }
  for (int seen = 0; !seen;) {
#pragma omp atomic read
    seen = ready;
  }
#pragma omp flush
#pragma omp for
  for (int i = 0; i < N; ++i) C[i] = factor * (A[i] + B[i]);
}""",
}

FOLLOWED = [*RACY.values(), *ORDERED.values()]

Search = Callable[..., str]


def kernel(symbol: str, body: str) -> str:
    return f'extern "C" void {symbol}(const float* A, const float* B, float* C, int N) {{{body}}}\n'


ALL_FOLLOWED = HEAD + "".join(kernel(f"case_{n}", body) for n, body in enumerate(FOLLOWED))
"""Compiled once for all of them."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No workload is left out because this host is slow."""
    monkeypatch.setattr(cpu, "RACE_SEARCH_S", math.inf)


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """Looks for races in a body; workloads take so many ns without the tool."""
    config = SupervisorConfig(cache_folder=tmp_path_factory.getbasetemp() / "audit-cache")
    shim = build_shim(TASK.c_signature, config)

    def run(body: str, time_ns: float = 1e4, abi: Abi = Abi.C) -> str:
        symbol, source = SYMBOL, HEAD + kernel(SYMBOL, body)
        if body in FOLLOWED:
            symbol, source = f"case_{FOLLOWED.index(body)}", ALL_FOLLOWED + kernel(SYMBOL, ADD)
        asked = request(TASK, source, Mode.QUICK)
        library = build_solution(asked, config).library
        target = Target(abi, Direction.FORWARD, library=library, symbol=symbol, shim=shim)
        found = RaceSearch(asked, config, SmallBench(config))
        return found.search(target, [(workload, time_ns) for workload in WORKLOADS])

    return run


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", RACY)
def test_a_race_is_a_wrong_result_that_names_its_lines(name: str, search: Search) -> None:
    with pytest.raises(FaultError) as caught:
        search(RACY[name])
    assert caught.value.fault.verdict is Verdict.WRONG_RESULT
    assert "depends on which thread comes first: data race" in caught.value.fault.reason
    assert "kernel.cpp:" in caught.value.fault.reason


@pytest.mark.parametrize("name", ORDERED)
def test_threads_in_order_are_not_accused(name: str, search: Search) -> None:
    assert search(ORDERED[name]) == "none in 2 of 2 listed workloads"


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_what_the_tool_does_not_follow_is_said_to_be_unknown(name: str, search: Search) -> None:
    assert search(NOT_FOLLOWED[name]).startswith("unknown (")


def test_where_nothing_is_looked_for_the_reason_is_said(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search(ADD, abi=Abi.TORCH).startswith("not checked: only for the c ABI")
    racy = RACY["a sum without its reduction"]
    assert search(racy, time_ns=2 * RACE_CALL_NS).startswith("not checked")
    monkeypatch.setattr(cpu, "RACE_SEARCH_S", 0.0)
    ordered = ORDERED["worksharing with its barriers"]
    assert search(ordered) == "none in 1 of 2 listed workloads"
    monkeypatch.delattr(cpu, "CpuSanitizers")  # it is not built again
    assert search(ADD) == "none: it starts no threads"
