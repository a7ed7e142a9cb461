"""What a signal from outside has ended is nobody's fault; what ends by itself is its own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from gpu_runner.data import wire
from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Verdict
from gpu_runner.supervisor.build.build import (
    _KILLED_PART,
    build,
    build_anchor,
    build_runner,
    build_shim,
)
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.host import jail, killed, proc, process
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.host.proc import descendants
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.oracle.client import Oracle
from gpu_runner.supervisor.runner.conditions import Arenas
from gpu_runner.supervisor.runner.faults import FaultError, InDoubt
from gpu_runner.supervisor.runner.freeze import Freezer, NotStopped
from gpu_runner.supervisor.runner.session import Session
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import anchor

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")

ENDLESS = """
template <int N> struct A { A<N + 1>* n; static int f() { return A<N + 1>::f() + N; } };
int x = A<1>::f();
"""
"""For a compiler that may recurse as deep as it likes."""
CRASHES = f"int f(int); int x = {'f(' * 200_000}1{')' * 200_000};"
"""Ends g++ by a segmentation fault."""
LARGE = "#include <bits/stdc++.h>\nint x;"
FLAGS = ("-shared", "-fPIC", "-ftemplate-depth=100000000")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def recipe(source: str) -> Recipe:
    return Recipe({"a.cpp": source}, "a.cpp", DeviceKind.CPU, FLAGS)


def wait_for(found: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not found():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def ours(name: str) -> list[int]:
    """Processes of that name below this one, outermost first."""
    return [pid for pid in descendants(os.getpid()) if name_of(pid) == name]


@contextmanager
def killing(name: str, *, last: bool = False, number: int = signal.SIGKILL) -> Iterator[None]:
    """Kill one of our descendants as soon as a process of that name, and a compiler, is there."""

    def kill() -> None:
        wait_for(lambda: bool(ours("cc1plus")))
        os.kill(ours(name)[-1 if last else 0], number)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()


@needs_jail
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "last", "number"),
    [
        ("g++", False, signal.SIGKILL),
        ("g++", False, signal.SIGTERM),
        ("bash", False, signal.SIGKILL),
        ("bwrap", False, signal.SIGKILL),
        ("bwrap", True, signal.SIGKILL),
    ],
)
def test_a_compiler_that_somebody_kills_blames_nobody(
    tmp_path: Path, name: str, last: bool, number: int
) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    with killing(name, last=last, number=number):  # noqa: SIM117 - the killer outlives the error
        with pytest.raises(KilledFromOutside, match="the compiler was killed from outside"):
            build(recipe(ENDLESS), config)


@needs_jail
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_part_of_a_compiler_that_somebody_kills_is_started_again(
    tmp_path: Path, number: int
) -> None:
    """Only the compiler's own words tell of it, and a source can have those printed."""
    with killing("cc1plus", number=number):
        built = build(recipe(LARGE), SupervisorConfig(cache_folder=tmp_path))
    assert built.library is not None


@needs_jail
def test_the_kernels_count_is_evidence_for_a_part_of_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killed, "oom_kills", iter(range(1 << 30)).__next__)
    with killing("cc1plus"):  # noqa: SIM117 - the killer outlives the error
        with pytest.raises(KilledFromOutside, match="did the host run out of memory"):
            build(recipe(ENDLESS), SupervisorConfig(cache_folder=tmp_path))


def test_an_old_kill_for_memory_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    kills = killed.HostKills()
    assert not kills.lately
    count = killed.oom_kills()
    monkeypatch.setattr(killed, "oom_kills", lambda: count + 1)
    assert kills.lately
    monkeypatch.setattr(killed, "DYING_S", 0.0)
    assert not kills.lately


@needs_jail
def test_what_ends_a_compiler_by_itself_is_its_sources(tmp_path: Path) -> None:
    built = build(recipe(CRASHES), SupervisorConfig(cache_folder=tmp_path))
    assert "Segmentation fault" in built.why_not(SupervisorConfig())
    small = SupervisorConfig(cache_folder=tmp_path, memory_bytes=48 << 20)
    built = build(recipe(LARGE), small)
    assert built.memory_exceeded
    assert "more memory than allowed (limit 0.0469 GiB)" in built.why_not(small)
    short = SupervisorConfig(cache_folder=tmp_path, build_timeout_s=0.5)
    assert "took longer than 0.5 s" in build(recipe(ENDLESS), short).why_not(short)
    lies = '#error "g++: fatal error: Killed signal terminated program cc1plus"'
    assert build(recipe(lies), small).library is None


def test_the_limit_on_processor_time_has_a_signal_of_its_own() -> None:
    made = Jail(limits=Limits(cpu_s=1, memory_bytes=1 << 28, processes=32))
    with ChildProcess(made, ["/bin/bash", "-c", "while :; do :; done"], jailed=True) as child:
        status = child.wait(60)
    assert killed.signal_of(status) == signal.SIGXCPU
    assert not killed.is_from_outside(status)
    assert not child.killed_from_outside(status)
    for own, number in ((None, 0), (0, 0), (1, 0), (255, 0), (139, 11), (-9, 9)):
        assert killed.signal_of(own) == number


@pytest.mark.parametrize(
    ("text", "is_killed"),
    [
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", True),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", True),
        ("nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)", False),
        ("g++: fatal error: CPU time limit exceeded signal terminated program cc1plus", False),
        ("a.cpp:1:2: error: #error g++: fatal error: Killed signal terminated program x", False),
    ],
)
def test_what_compilers_say_of_their_parts(text: str, is_killed: bool) -> None:
    assert bool(_KILLED_PART.search(f"a.cpp: warning: before\n{text}\nbehind")) is is_killed


HOLDING = """
import sys, threading, time
held = bytearray(1 << 28)
for at in range(0, len(held), 4096):
    held[at] = 1
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("ready", flush=True)
while True:
    pass
"""

PARENT = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN if sys.argv[1] == "reaped" else signal.SIG_DFL)
if os.fork() == 0:
    exec(sys.stdin.read())
time.sleep(60)
"""
SLEEPS = "print('ready', flush=True); time.sleep(60)"
WAKES_AND_ENDS = """
from tests.unit.gpu_runner.supervisor.runner.test_freeze import WAKING
exec(WAKING.replace("while True:", "deadline = time.monotonic() + 1\\n"
    "while time.monotonic() < deadline:") + "\\nos._exit(0)")
"""


@contextmanager
def running(program: str, *arguments: str, given: str = "") -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(given)
        child.stdin.close()
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        for pid in [*descendants(child.pid), child.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def check_for_a_while(freezer: Freezer) -> None:
    """A signal takes a moment."""
    for _ in range(1000):
        freezer.check()


@pytest.mark.parametrize("pause_s", [0.0, 0.3])
def test_who_is_killed_while_stopped_has_not_run(pause_s: float) -> None:
    """Neither while it gives its memory back, nor when it has."""
    with running(HOLDING) as child:
        freezer = Freezer(child.pid, bare=True)
        freezer.freeze()
        freezer.check()
        os.kill(child.pid, signal.SIGKILL)
        time.sleep(pause_s)
        with pytest.raises(KilledFromOutside, match="while it was stopped"):
            check_for_a_while(freezer)


def test_who_dies_while_it_is_looked_at_has_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(HOLDING) as child:
        freezer = Freezer(child.pid, bare=True)
        freezer.freeze()

        def dies_now(pid: int) -> bool:
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: killed.is_dead(pid))
            return True

        monkeypatch.setattr(proc, "is_still", dies_now)
        monkeypatch.setattr(freezer, "_moved", lambda: "ran while it was stopped")
        with pytest.raises(KilledFromOutside):
            freezer.check()


@pytest.mark.parametrize("how", ["kept", "reaped"])
def test_a_child_that_is_killed_while_stopped_has_not_run(how: str) -> None:
    with running(PARENT, how, given=SLEEPS) as parent:
        freezer = Freezer(parent.pid, bare=True)
        freezer.freeze()
        (child,) = descendants(parent.pid)
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: killed.is_dead(child))
        with pytest.raises(KilledFromOutside):
            freezer.check()


def test_who_wakes_and_ends_by_itself_has_run() -> None:
    with running(PARENT, "kept", given=WAKES_AND_ENDS) as parent:
        freezer = Freezer(parent.pid, bare=True)
        freezer.freeze()
        (child,) = descendants(parent.pid)
        wait_for(lambda: killed.is_dead(child))
        with pytest.raises(NotStopped, match="ran while it was stopped"):
            freezer.check()


@needs_jail
@pytest.mark.parametrize("which", [0, -1])
def test_a_killed_oracle_is_no_task_that_failed(tmp_path: Path, which: int) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    with (
        Oracle(config) as oracle,
        closing(Arena("inputs")) as inputs,
        closing(Arena("samples")) as samples,
    ):
        jailed = oracle._child.pid
        wait_for(lambda: name_of([jailed, *descendants(jailed)][-1]).startswith("python"))
        victim = [jailed, *descendants(jailed)][which]
        if victim != jailed:  # its socket is closed, and its jail has not ended yet
            os.kill(jailed, signal.SIGSTOP)
            threading.Timer(0.3, os.kill, (jailed, signal.SIGCONT)).start()
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: killed.is_dead(victim))
        with pytest.raises(KilledFromOutside, match="the oracle, which runs the task's code"):
            oracle.load(find_task("vector_add"), inputs, samples)


@contextmanager
def a_session(config: SupervisorConfig) -> Iterator[tuple[Session, wire.Call]]:
    """A runner that stands still, and the call that it would get next."""
    target = Target(
        Abi.C,
        Direction.FORWARD,
        library=build_anchor(config),
        symbol=anchor.SIGNATURE.symbol,
        shim=build_shim(anchor.SIGNATURE, config),
        runner=build_runner(config),
    )
    with closing(Arena("inputs")) as inputs, closing(Arena("outputs")) as outputs:
        size = anchor._prepare(inputs, outputs)
        with Session(target, Arenas(inputs, outputs), config) as session:
            session.ready()
            rng = random.Random(0)
            session.call(anchor._call(0, size, rng))
            yield session, anchor._call(1, size, rng)


@needs_jail
@pytest.mark.sampled(3)  # of all, one of each
@pytest.mark.parametrize("pause_s", [0.0, 0.3])
@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_runner_that_is_killed_between_calls_blames_nobody(
    cache: Path, which: int, pause_s: float
) -> None:
    with a_session(SupervisorConfig(cache_folder=cache)) as (session, call):
        outermost = session._child.pid
        os.kill([outermost, *descendants(outermost)][which], signal.SIGKILL)
        time.sleep(pause_s)
        with pytest.raises(KilledFromOutside):
            session.call(call)


@needs_jail
def test_who_has_taken_too_much_memory_was_killed_by_us(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_session(SupervisorConfig(cache_folder=cache)) as (session, call):
        monkeypatch.setattr(process, "used_bytes", lambda *_: sys.maxsize)
        wait_for(lambda: session._child.memory_exceeded)
        with pytest.raises(FaultError) as caught:
            session.call(call)
    assert caught.value.fault.verdict is Verdict.MEMORY_LIMIT


@needs_jail
def test_a_death_in_a_call_is_the_kernels_unless_it_can_be_told(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SupervisorConfig(cache_folder=cache)
    with a_session(config) as (session, _):
        session._thaw()
        os.kill(descendants(session._child.pid)[-1], signal.SIGKILL)
        death = session._death("in a call")
        assert isinstance(death, InDoubt)  # so it is measured again
        assert death.fault.verdict is Verdict.RUNTIME_ERROR
        assert "by itself or by somebody" in death.fault.reason
        count = killed.oom_kills()
        monkeypatch.setattr(killed, "oom_kills", lambda: count + 1)
        with pytest.raises(KilledFromOutside):
            session._death("in a call")
    with a_session(config) as (session, _):
        os.kill(session._child.pid, signal.SIGKILL)
        with pytest.raises(KilledFromOutside):
            session._death("in a call")
