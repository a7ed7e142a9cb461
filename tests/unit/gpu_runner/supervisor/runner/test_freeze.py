"""A runner's process tree stands still between calls, and is found out if it does not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gpu_runner.supervisor.host import proc
from gpu_runner.supervisor.host.proc import Schedule
from gpu_runner.supervisor.runner import freeze
from gpu_runner.supervisor.runner.freeze import Freezer, NotStopped

COUNTING = """
import os, sys, threading, time
def count(name):
    n = 0
    while True:
        n += 1
        if n % 1000 == 0:
            os.pwrite(int(sys.argv[1]), n.to_bytes(8, "little"), 8 * name)
os.fork()
threading.Thread(target=count, args=(os.getpid() % 2,), daemon=True).start()
count(2 + os.getpid() % 2)
"""

WAKING = """
import ctypes, signal, time
class Spec(ctypes.Structure):
    _fields_ = [("interval", ctypes.c_long * 2), ("value", ctypes.c_long * 2)]
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int),
                ("pad", ctypes.c_char * 64)]
libc = ctypes.CDLL(None, use_errno=True)
timer = ctypes.c_void_p()
event = Event(None, signal.SIGCONT, 0)
assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
spec = Spec((0, 20_000_000), (0, 20_000_000))
assert libc.timer_settime(timer, 0, ctypes.byref(spec), None) == 0
print("ready", flush=True)
while True:
    pass
"""


@pytest.fixture
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path = tmp_path_factory.mktemp("freeze") / "counters"
    path.write_bytes(bytes(64))
    with path.open("r+b") as file:
        yield file.fileno()


def content(descriptor: int) -> bytes:
    return os.pread(descriptor, 64, 0)


def test_threads_and_children_stand_still_until_they_may_run(memory: int) -> None:
    """What they ran is accounted by then, also where a host takes processors away for a while."""
    process = subprocess.Popen(
        [sys.executable, "-c", COUNTING, str(memory)], pass_fds=[memory], start_new_session=True
    )
    freezer = Freezer(process.pid, bare=True)
    late = 0
    try:
        while content(memory)[16:32].count(b"\0") == 16:
            time.sleep(0.01)
        for _ in range(5):
            freezer.freeze()
            before = content(memory)
            time.sleep(0.03)
            assert content(memory) == before
            freezer.check()
            freezer.thaw()
            time.sleep(0.03)
            assert content(memory) != before
        for _ in range(200):
            freezer.freeze()
            settled = proc.schedules(freezer.tree())
            time.sleep(0.001)
            later = proc.schedules(freezer.tree())
            late += any(settled[t].ran_ns != later[t].ran_ns for t in settled)
            freezer.thaw()
            time.sleep(0.002)
        assert late <= freeze._LATE_TIMES  # which nobody is blamed for
    finally:
        freezer.freeze()
        for pid in freezer.tree():
            subprocess.run(["kill", "-9", str(pid)], check=False)
        process.wait()


def stop_again_and_again(freezer: Freezer) -> None:
    for _ in range(50):
        freezer.freeze()
        time.sleep(0.05)
        freezer.check()


def test_a_timer_that_wakes_the_process_is_noticed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAKING], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        freezer = Freezer(process.pid, bare=True)
        with pytest.raises(NotStopped, match="ran while it was stopped"):
            stop_again_and_again(freezer)
    finally:
        process.kill()
        process.wait()


def test_a_process_that_has_ended_is_still() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    freezer = Freezer(process.pid, bare=True)
    freezer.freeze()
    freezer.check()
    freezer.thaw()


THREAD = "/proc/1/task/1"
SEEN = Schedule(ran_ns=1_000_000, delayed_ns=0, slices=4)


def frozen(monkeypatch: pytest.MonkeyPatch, later: Schedule) -> Freezer:
    """One that stopped a thread as `SEEN`, which is then seen as `later`."""
    seen = SEEN if later.slices else Schedule(SEEN.ran_ns, 0, 0)
    freezer = Freezer(os.getpid(), bare=False)
    monkeypatch.setattr(proc, "descendants", lambda pid: [])
    monkeypatch.setattr(proc, "schedules", lambda tree: {THREAD: seen})
    freezer.freeze()
    monkeypatch.setattr(proc, "schedules", lambda tree: {THREAD: later})
    return freezer


@pytest.mark.parametrize(
    ("later", "ran"),
    [
        (Schedule(ran_ns=9_000_000, delayed_ns=0, slices=4), False),  # accounted only now
        (Schedule(ran_ns=12_000_000, delayed_ns=0, slices=4), True),  # too much for that
        (Schedule(ran_ns=9_000_000, delayed_ns=0, slices=5), True),
        (Schedule(ran_ns=1_001_000, delayed_ns=0, slices=5), False),  # a trifle
        (Schedule(ran_ns=9_000_000, delayed_ns=0, slices=0), True),  # nobody counts slices
    ],
)
def test_time_that_is_accounted_late_is_no_time_that_it_ran(
    monkeypatch: pytest.MonkeyPatch, later: Schedule, ran: bool
) -> None:
    freezer = frozen(monkeypatch, later)
    if ran:
        with pytest.raises(NotStopped, match="ran while it was stopped"):
            freezer.check()
    else:
        freezer.check()


def test_late_time_is_rare_and_counts_for_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    later = Schedule(ran_ns=9_000_000, delayed_ns=0, slices=4)
    freezer = frozen(monkeypatch, later)
    freezer.check()
    freezer.freeze()
    assert freezer.ran_ns() >= 8_000_000
    monkeypatch.setattr(proc, "schedules", lambda tree: {THREAD: SEEN})
    freezer.freeze()
    monkeypatch.setattr(proc, "schedules", lambda tree: {THREAD: later})
    freezer.check()
    with pytest.raises(NotStopped, match="ran while it was stopped"):
        freezer.check()


def ran_ns(
    monkeypatch: pytest.MonkeyPatch,
    ran: list[int],
    *,
    ended: int = 0,
    processors: int = 1,
    idle_ns: float = 0.0,
) -> float:
    """What a call of a process cost whose threads ran this long, and ended ones `ended`."""
    freezer = Freezer(1, bare=True, processors=processors, idle_ns=idle_ns)
    threads = [f"/proc/1/task/{number}" for number in range(1, len(ran) + 1)]
    monkeypatch.setattr(proc, "descendants", lambda pid: [])
    monkeypatch.setattr(proc, "is_still", lambda pid: True)
    monkeypatch.setattr(freeze, "_signal", lambda pid, number: None)
    for times, clock in ([0] * len(ran), 0), (ran, sum(ran) + ended):
        seen = {thread: Schedule(at, 0) for thread, at in zip(threads, times, strict=True)}
        monkeypatch.setattr(proc, "schedules", lambda tree, seen=seen: seen)
        monkeypatch.setattr(freeze, "_clock_ns", lambda pid, clock=clock: clock)
        freezer.freeze()
    return freezer.ran_ns()


@pytest.mark.parametrize(
    ("ran", "held"),
    [
        ([100_000], 100_000),
        ([100_000, 6_000, 5_000], 100_000),  # two that wait
        ([40_000, 40_000, 40_000], 40_000 + 2 * 33_000),  # they take turns
        ([100_000, *[7_000] * 20], 100_000 + 4 * 7_000),  # more of them than anybody needs
    ],
)
def test_threads_that_wait_cost_a_call_nothing(
    monkeypatch: pytest.MonkeyPatch, ran: list[int], held: int
) -> None:
    assert ran_ns(monkeypatch, ran, idle_ns=7_000) == held
    assert ran_ns(monkeypatch, ran) == sum(ran)


def test_work_of_ended_threads_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ran_ns(monkeypatch, [1_000, 9_000], ended=50_000, idle_ns=7_000) == 59_000
    shared = ran_ns(monkeypatch, [1_000, 9_000], ended=50_000, processors=4, idle_ns=7_000)
    assert shared == 59_000 / 4
