"""A submission that ends or stops itself is to blame for it; this host is so on evidence alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Mode, Verdict
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.adversarial.side_by_side import SideBySide, selected

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

HEAD = """
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
static int control() {
  struct stat status;
  for (int fd = 3; fd < 64; ++fd)
    if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) return fd;
  return -1;
}
static void say(const char* name, long answer) {
  if (answer != -1) printf("GOT %s\\n", name), fflush(stdout);
}
static void add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
"""
FUNCTION = 'extern "C" void vector_add(const float* A, const float* B, float* C, int N)'
ARM = """
  for (int fd : {control(), 1}) {
    f_owner_ex owner{F_OWNER_PID, getpid()};
    int on = 1, self = getpid();
    say("F_SETSIG", fcntl(fd, F_SETSIG, SIGKILL));
    say("F_SETOWN", fcntl(fd, F_SETOWN, getpid()));
    say("F_SETOWN_EX", fcntl(fd, F_SETOWN_EX, &owner));
    say("O_ASYNC", fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
    say("FIOASYNC", ioctl(fd, FIOASYNC, &on));
    say("FIOSETOWN", ioctl(fd, 0x8901, &self));
    say("SIOCSPGRP", ioctl(fd, 0x8902, &self));
  }
  int file = open("/tmp/leased", O_CREAT | O_RDONLY, 0600);
  say("F_SETLEASE", fcntl(file, F_SETLEASE, F_WRLCK));
  say("F_NOTIFY", fcntl(open("/tmp", O_RDONLY), F_NOTIFY, DN_CREATE));
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  int timer = 0;
  itimerval soon{{0, 0}, {0, 1000}};
  say("timer_create", syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer));
  say("setitimer", setitimer(ITIMER_REAL, &soon, nullptr));
  say("mq_open", mq_open("/q", O_CREAT | O_RDWR, 0600, nullptr));
  say("mq_notify", syscall(SYS_mq_notify, file, &event));
  say("PDEATHSIG", prctl(PR_SET_PDEATHSIG, SIGKILL));
  say("strict", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
  sock_filter kill{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS};
  sock_fprog program{1, &kill};
  say("filter", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
  rlimit one{1, 1};
  say("RLIMIT_CPU", setrlimit(RLIMIT_CPU, &one));
  say("kill", ::kill(getpid(), SIGKILL));
  say("tgkill", syscall(SYS_tgkill, getpid(), gettid(), SIGKILL));
  say("tkill", syscall(SYS_tkill, gettid(), SIGKILL));
  say("SIGSTOP", raise(SIGSTOP) == 0 ? 0 : -1);
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  say("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, getpid(), SIGKILL, &info));
  say("pidfd_open", syscall(434, getpid(), 0));
  say("io_uring", syscall(425, 1, nullptr));
"""
"""All ways to be killed or stopped by what somebody else does, or to look like that."""

AFTER = "add(A, B, C, N);"
ENDS = {  # what a kernel does, and the verdicts that may come of it
    "abort": ("abort();", Verdict.RUNTIME_ERROR),
    "exits as if killed": ("_exit(137);", Verdict.RUNTIME_ERROR),
    "exits as if ended": ("_exit(143);", Verdict.RUNTIME_ERROR),
    "writes too large a file": (
        'int f = open("/tmp/f", O_CREAT | O_WRONLY, 0600); ftruncate(f, 1L << 40);',
        Verdict.RUNTIME_ERROR,
    ),
    "overflows its stack": (
        "volatile char big[1 << 20]; for (char& c : (char(&)[1 << 20])big) c = 1;"
        "vector_add(A, B, C, N + big[5]);",
        Verdict.RUNTIME_ERROR,
    ),
    "takes all memory": (
        "for (;;) { char* p = (char*)malloc(1 << 26); if (p) memset(p, 1, 1 << 26); }",
        Verdict.MEMORY_LIMIT,
    ),
    "closes its socket": ("close(control());", Verdict.RUNTIME_ERROR),
    "closes everything": ("for (int f = 0; f < 64; ++f) close(f);", Verdict.RUNTIME_ERROR),
    "sends rubbish": ('write(control(), "rubbish of all kinds", 20);', Verdict.VIOLATION),
    "fills its socket": (
        "static char block[1 << 16]; for (;;) write(control(), block, sizeof block);",
        Verdict.VIOLATION,
    ),
    "takes all threads": (
        "for (;;) (new std::thread([] { for (;;) pause(); }))->detach();",
        Verdict.RUNTIME_ERROR,
    ),
    "ends as it is loaded": (
        "} __attribute__((constructor)) static void loaded() { _exit(137);",
        Verdict.RUNTIME_ERROR,
    ),
    "ends after its acknowledgement": (
        f"{AFTER} (new std::thread([] {{ usleep(50); _exit(137); }}))->detach();",
        Verdict.RUNTIME_ERROR,
    ),
}
SURVIVES = {
    "arms everything": ARM + AFTER,
    "takes all descriptors": f"while (dup(1) >= 0); {AFTER}",
    "fills its pipe": f'for (int i = 0; i < 1 << 16; ++i) puts("filled"); {AFTER}',
}
SAYS_KILLED = "g++: fatal error: Killed signal terminated program cc1plus"
SOURCES = {
    "assembler speaks of a kill": (
        f'asm(".print \\"{SAYS_KILLED}\\"\\n.error \\"no\\"");\n{FUNCTION} {{}}'
    ),
    "text speaks of a kill": f'#pragma message "\\n{SAYS_KILLED}"\n{FUNCTION} {{ none; }}',
}

KILLS = "os.kill(os.getpid(), {})"
CALLED = "import os, torch\ndef forward(A, B, N):\n    {}\n    return A + B\n"
COMPILING = CALLED.replace("torch\n", "torch\nnamed = torch.compile\n")
MODULES = {
    "module kills itself": (f"import os\n{KILLS.format(9)}", Verdict.COMPILE_ERROR),
    "module terminates itself": (f"import os\n{KILLS.format(15)}", Verdict.COMPILE_ERROR),
    "module exits as if killed": ("import os\nos._exit(137)", Verdict.COMPILE_ERROR),
    "module stops itself": (f"import os\n{KILLS.format(19)}", Verdict.COMPILE_ERROR),
    "module speaks of a kill": (
        f"print({SAYS_KILLED!r}, flush=True)\nraise OSError",
        Verdict.COMPILE_ERROR,
    ),
    "call kills itself": (CALLED.format(KILLS.format(9)), Verdict.RUNTIME_ERROR),
    "call exits as if killed": (CALLED.format("os._exit(137)"), Verdict.RUNTIME_ERROR),
    "rehearsal kills itself": (COMPILING.format(KILLS.format(9)), Verdict.RUNTIME_ERROR),
    "rehearsal stops itself": (COMPILING.format(KILLS.format(19)), Verdict.TIME_LIMIT),
}
EVERYDAY = Path(__file__).parent / "common" / "everyday.py"


@pytest.fixture(scope="module")
def ahead(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SideBySide]:
    """The parametrised kernels of this module, begun in the background."""
    config = SupervisorConfig(
        cache_folder=tmp_path_factory.mktemp("cache"),
        call_timeout_s=15.0,
        build_timeout_s=60.0,
        memory_bytes=1 << 29,
    )
    requests = {name: request_for(name) for name in selected(request, "name")}
    with SideBySide(requests, config, tmp_path_factory.mktemp("ahead")) as evaluations:
        yield evaluations


def request_for(name: str) -> EvaluationRequest:
    task = dataclasses.replace(find_task("vector_add"), baselines=())
    language = Language.CPP
    if name in MODULES:
        source, language = MODULES[name][0], Language.PYTHON
    elif name == EVERYDAY.stem:
        source, language = EVERYDAY.read_text(), Language.PYTHON
    elif name in SOURCES:
        source = SOURCES[name]
    else:
        source = f"{HEAD}{FUNCTION} {{ {SURVIVES.get(name) or ENDS[name][0]} }}\n"
    solution = Solution(source=source, language=language)
    return EvaluationRequest(
        evaluation_id=name, task=task, solution=solution, mode=Mode.TEST, device="cpu"
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.thorough] * ("stops" in name))
        for name in [*ENDS, *MODULES]
    ],
)
def test_who_ends_itself_is_to_blame(name: str, ahead: SideBySide) -> None:
    result = ahead.result(name)
    expected = {**ENDS, **MODULES}[name][1]
    assert result.verdict is expected, (result.reason, result.log, result.output)
    assert not result.retryable


@pytest.mark.parametrize("name", SURVIVES)
def test_what_would_end_it_from_outside_is_refused(name: str, ahead: SideBySide) -> None:
    result = ahead.result(name)
    assert result.verdict is Verdict.CORRECT, (result.reason, result.log, result.output)
    assert "GOT" not in result.output


@pytest.mark.parametrize("name", [EVERYDAY.stem])
def test_what_programs_do_beside_their_work_is_not_refused(name: str, ahead: SideBySide) -> None:
    result = ahead.result(name)
    assert result.verdict is Verdict.CORRECT, (result.reason, result.log, result.output)


@pytest.mark.parametrize("name", SOURCES)
def test_words_are_no_evidence_that_a_compiler_was_killed(name: str, ahead: SideBySide) -> None:
    result = ahead.result(name)
    assert result.verdict is Verdict.COMPILE_ERROR, (result.reason, result.log)
