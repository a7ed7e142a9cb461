"""Every wrong or hostile kernel gets its own verdict and a reason; the next one runs unharmed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError, decode, encode
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.rounding import HIDDEN
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES, Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor import timeline
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.adversarial.kernels import FOLDER
from tests.adversarial.side_by_side import SideBySide, processes_left, selected

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

HEAD = (
    Path(FOLDER, "common", "patch.h").read_text()
    + """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <vector>
#include <omp.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cstdint>
// Overhears the number of each call from the second one on, and forges its acknowledgement on any
// socket that the process has.
static uint64_t call_id = 0;
static ssize_t overhear(int from, void* data, size_t size) {
  ssize_t n = read(from, data, size);
  if (n > 16) memcpy(&call_id, data, sizeof call_id);  // the body behind a header
  return n;
}
static bool claim(double time_ns) {
  if (call_id == 0) {
    hostile::patch_import("read", reinterpret_cast<void*>(overhear));
    hostile::patch_import("__read_chk", reinterpret_cast<void*>(overhear));
    return false;
  }
  struct { uint32_t magic, kind; uint64_t length, call_id; double time_ns; uint64_t none; } frame{
      0x4B424331, 2, 24, call_id, time_ns, 0};
  for (int fd = 3; fd < 64; ++fd) {
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) write(fd, &frame, sizeof frame);
  }
  return true;
}
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
"""
)
ADD = "for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];"

BAD_BODIES = {
    "nan": ("for (int i = 0; i < N; ++i) C[i] = NAN;", Verdict.WRONG_RESULT, "nan"),
    "zeros": ("memset(C, 0, N * sizeof(float));", Verdict.WRONG_RESULT, "wrong"),
    "writes nothing": ("", Verdict.WRONG_RESULT, "wrong"),
    "drops the tail": (
        "for (int i = 0; i < N - 1; ++i) C[i] = A[i] + B[i];",
        Verdict.WRONG_RESULT,
        "wrong",
    ),
    "segfault": ("*(volatile int*)8 = 1;", Verdict.RUNTIME_ERROR, "segmentation fault"),
    "null": ("*(volatile int*)0 = 1;", Verdict.RUNTIME_ERROR, "null pointer"),
    "abort": ("abort();", Verdict.RUNTIME_ERROR, "abort"),
    "slots for four threads": (
        "#pragma omp parallel\nif (omp_get_thread_num() >= 4) abort();\n" + ADD,
        Verdict.RUNTIME_ERROR,
        "teams had",
    ),
    "exit": ("_exit(0);", Verdict.RUNTIME_ERROR, "without an answer"),
    "exception": ("throw 1;", Verdict.RUNTIME_ERROR, "threw"),
    "stack overflow": (
        "volatile char big[64 << 20]; for (auto& c : big) c = 1;",
        Verdict.RUNTIME_ERROR,
        "segmentation fault",
    ),
    "infinite loop": ('for (;;) asm volatile("");', Verdict.TIME_LIMIT, "within"),
    "allocates 40 GB": (
        "std::vector<float> huge(10ull << 30, 1.0f); C[0] = huge[N];",
        Verdict.MEMORY_LIMIT,
        "memory",
    ),
    "touches 40 GB piecewise": (
        "for (int i = 0; i < 40 * 1024; ++i) memset(malloc(1 << 20), 1, 1 << 20);",
        Verdict.MEMORY_LIMIT,
        "GiB",
    ),
    "writes behind its output": ("C[N] = 1.0f; " + ADD, Verdict.VIOLATION, "behind"),
    "writes before its output": ("C[-1] = 1.0f; " + ADD, Verdict.VIOLATION, "before"),
    "writes to an input": ("((float*)A)[0] = 0.0f; " + ADD, Verdict.VIOLATION, "input"),
    "claims success": (
        'puts("{\\"verdict\\": \\"CORRECT\\"}"); fflush(stdout); _exit(0);',
        Verdict.RUNTIME_ERROR,
        "without an answer",
    ),
    "hides 3 GB in shared memory": (
        "void* p = mmap(0, 3ull << 30, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);"
        "memset(p, 1, 3ull << 30);",
        Verdict.MEMORY_LIMIT,
        "GiB",
    ),
    "claims one nanosecond": (ADD + "if (claim(1.0)) _exit(0);", Verdict.RUNTIME_ERROR, "ended"),
    "claims ages": (ADD + "claim(1.7e308);", Verdict.VIOLATION, "claims"),
    "says it is done before it is": ("claim(1000.0); " + ADD, Verdict.VIOLATION, ""),
    "caches by call": (
        "static std::vector<float> last; if (last.empty()) { " + ADD + " last.assign(C, C + N); }"
        " memcpy(C, last.data(), (last.size() < (size_t)N ? last.size() : N) * sizeof(float));",
        Verdict.WRONG_RESULT,
        "wrong",
    ),
}

HARMLESS_BODIES = {
    # What the jail forbids fails inside; the kernel itself is right, so it is correct.
    "writes outside its tmpfs": (
        'for (auto p : {"/usr/kbench", "/etc/kbench", "/kbench", "/home/kbench"})'
        " if (open(p, O_CREAT | O_WRONLY, 0644) >= 0) return; "
    ),
    "reads secrets": (
        'for (auto p : {"/etc/shadow", "/etc/passwd", "/root/.ssh", "/proc/1/environ"})'
        " if (open(p, O_RDONLY) >= 0) return; "
    ),
    "network": (
        "int s = socket(AF_INET, SOCK_STREAM, 0); sockaddr_in to{}; to.sin_family = AF_INET;"
        ' to.sin_port = htons(6379); inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);'
        " if (s >= 0 && connect(s, (sockaddr*)&to, sizeof to) == 0) return; "
    ),
    "floods stdout": 'for (int i = 0; i < 20000; ++i) puts("flood flood flood flood"); ',
}

BAD_SOURCES = {
    "not C++": ("this is no C++ at all", Verdict.COMPILE_ERROR, "error"),
    "binary": ("\x01\x02\x03\x7f" * 100, Verdict.COMPILE_ERROR, "error"),
    "missing symbol": ("int other() { return 1; }", Verdict.COMPILE_ERROR, "vector_add"),
    "wrong signature": (
        'extern "C" void vector_add(double* A) {}',
        Verdict.COMPILE_ERROR,
        "vector_add",
    ),
    "includes a secret": ('#include "/etc/shadow"\n', Verdict.COMPILE_ERROR, "No such file"),
    "endless template": (
        "template <int N> struct F { static constexpr int v = F<N + 1>::v + F<N + 2>::v; };"
        "int x = F<0>::v;",
        Verdict.COMPILE_ERROR,
        "template",
    ),
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    return SupervisorConfig(
        cache_folder=tmp_path_factory.mktemp("cache"), call_timeout_s=5.0, memory_bytes=1 << 29
    )


@pytest.fixture(scope="module")
def ahead(
    request: pytest.FixtureRequest,
    config: SupervisorConfig,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SideBySide]:
    """The parametrised kernels of this module, begun in the background."""
    sources = {name: source_of(name) for name in selected(request, "name")}
    requests = {name: request_for(source) for name, source in sources.items()}
    with SideBySide(requests, config, tmp_path_factory.mktemp("ahead")) as evaluations:
        yield evaluations


def source_of(name: str) -> str:
    if name in BAD_SOURCES:
        return BAD_SOURCES[name][0]
    harmless = HARMLESS_BODIES.get(name)
    return in_function(BAD_BODIES[name][0] if harmless is None else harmless + ADD)


def run(source: str, config: SupervisorConfig, mode: Mode = Mode.TEST) -> EvaluationResult:
    return checked(evaluate(request_for(source, mode), config))


def request_for(source: str, mode: Mode = Mode.TEST) -> EvaluationRequest:
    return EvaluationRequest(
        evaluation_id="test",
        task=find_task("vector_add"),
        solution=Solution(source=source, language=Language.CPP),
        mode=mode,
        device="cpu",
    )


def checked(result: EvaluationResult) -> EvaluationResult:
    assert encode(decode(EvaluationResult, encode(result))) == encode(result)
    return result


def in_function(body: str) -> str:
    return f"{HEAD}{body}\n}}\n"


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_body_gets_its_verdict(name: str, ahead: SideBySide, config: SupervisorConfig) -> None:
    _, verdict, words = BAD_BODIES[name]
    result = checked(ahead.result(name))
    if verdict is Verdict.MEMORY_LIMIT and result.verdict is Verdict.TIME_LIMIT:
        patient = dataclasses.replace(config, call_timeout_s=60.0)  # the host is busy
        result = run(source_of(name), patient)
    assert (result.verdict, result.latency_ns) == (verdict, None), result
    assert words.lower() in (result.reason + str(result.mismatch)).lower()


@pytest.mark.parametrize("name", BAD_SOURCES)
def test_bad_source_gets_a_compile_error(name: str, ahead: SideBySide) -> None:
    _, verdict, words = BAD_SOURCES[name]
    result = checked(ahead.result(name))
    assert result.verdict is verdict
    assert result.build is not None
    assert words in result.build.log


@pytest.mark.parametrize("name", HARMLESS_BODIES)
def test_forbidden_act_fails_inside_and_harms_nobody(name: str, ahead: SideBySide) -> None:
    result = checked(ahead.result(name))
    assert result.verdict is Verdict.CORRECT, result.reason
    assert len(result.output) <= 64 * 1024


def test_fork_bomb_ends_and_the_next_kernel_runs_unharmed(config: SupervisorConfig) -> None:
    bomb = run(in_function("for (;;) { fork(); }"), config)
    assert bomb.verdict in (Verdict.TIME_LIMIT, Verdict.MEMORY_LIMIT, Verdict.RUNTIME_ERROR)
    assert run(in_function(ADD), config).verdict is Verdict.CORRECT
    assert processes_left(config.cache_folder) == []


def few_workloads() -> Task:
    """The task with a listed, an unlisted and another hidden workload, which is soon measured."""
    task = find_task("vector_add")
    names = ("cpu_n1024", "cpu_n816", "cpu_n1023_small")
    kept = tuple(each for each in task.workloads if each.name in names)
    return dataclasses.replace(task, baselines=(), workloads=kept)


def test_kernel_cannot_tell_what_it_saw_of_hidden_workloads(config: SupervisorConfig) -> None:
    task = few_workloads()
    public = [w.parameters["N"] for w in task.workloads if not w.hidden]
    body = f"""
      bool seen = false;
      for (int n : {{{", ".join(map(str, public))}}}) seen |= n == N;
      {ADD}
      static const bool hidden = !seen;  // a process of public ones, and of drawn, begins with one
      if (hidden) {{
        printf("N=%d", N);
        fflush(stdout);
        throw std::length_error(std::to_string(N));
      }}
    """
    source = "#include <stdexcept>\n#include <string>\n" + in_function(body)
    request = EvaluationRequest(
        evaluation_id="test",
        task=task,
        solution=Solution(source=source, language=Language.CPP),
        mode=Mode.RANKED,
        device="cpu",
    )
    result = evaluate(request, config)
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.reason == "correct on the listed workloads, but not on a hidden one"
    assert result.output == ""
    assert all(not workload.processes for workload in result.workloads if workload.hidden)


def test_progress_tells_nothing_of_calls_on_hidden_workloads(
    config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "_INTERVAL_S", 0.0)
    task = few_workloads()
    request = dataclasses.replace(request_for(in_function(ADD), Mode.RANKED), task=task)
    told: list[str] = []
    evaluate(request, config, lambda stage, state, detail: told.append(detail))
    assert any(words.startswith("process 1: ") for words in told)
    assert [words for words in told if HIDDEN in words] == [HIDDEN, HIDDEN]  # begun, and done


def test_source_of_more_than_one_mebibyte_is_refused() -> None:
    Solution(source="x" * (1 << 20), language=Language.CPP)
    with pytest.raises(DataError, match=f"the limit is {SOURCE_LIMIT_BYTES}"):
        Solution(source="x" * ((1 << 20) + 1), language=Language.CPP)


@pytest.mark.parametrize("source", ["", "  \n", "int x;\0"])
def test_empty_or_binary_source_is_refused(source: str) -> None:
    with pytest.raises(DataError, match="source"):
        Solution(source=source, language=Language.CPP)


def test_compile_mode_builds_and_runs_nothing(config: SupervisorConfig) -> None:
    result = run(in_function("abort();"), config, Mode.COMPILE)
    assert result.verdict is Verdict.COMPILED
    assert result.latency_ns is None


def test_cuda_source_on_a_cpu_is_our_error_and_says_so(config: SupervisorConfig) -> None:
    request = EvaluationRequest(
        evaluation_id="test",
        task=find_task("vector_add"),
        solution=Solution(source="x", language=Language.CUDA),
        mode=Mode.TEST,
        device="cpu",
    )
    result = evaluate(request, config)
    assert result.verdict is Verdict.SYSTEM_ERROR
    assert "do not run on a cpu device" in result.reason


def test_host_without_a_jail_refuses(
    config: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jail, "probe", lambda: "bwrap is not installed (package bubblewrap)")
    result = run(in_function(ADD), config)
    assert result.verdict is Verdict.SYSTEM_ERROR
    assert "no jail" in result.reason
