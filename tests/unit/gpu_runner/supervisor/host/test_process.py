"""Processes, their processors, how they are heard, and what becomes of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gpu_runner.supervisor.host import nvml, process, processors
from gpu_runner.supervisor.host.channel import Channel, ChannelTimeout
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.leftovers import process_table
from gpu_runner.supervisor.host.memory import used_bytes
from gpu_runner.supervisor.host.process import ChildProcess, dying_with_us
from gpu_runner.supervisor.host.processors import by_core, keeping_off, measured_of
from tests.leftovers import left_behind, snapshot

SUPERVISOR = """
import sys
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import ChildProcess

made = Jail(limits=Limits(cpu_s=60, memory_bytes=1 << 28, processes=32))
child = ChildProcess(made, ["/bin/sleep", "60"], jailed=False)
print(child.pid, flush=True)
sys.stdin.read()
"""


def becomes(holds: Callable[[], bool]) -> bool:
    """Whether something is so within seconds."""
    deadline = time.monotonic() + 10
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def stat(pid: int) -> tuple[str, str]:
    """Name and the kernel's letter for the state of a process; X if there is none."""
    try:
        head, _, tail = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
    except OSError:
        return "", "X"
    return head.partition("(")[2], tail.split()[0]


def test_a_stopped_bare_process_dies_with_a_supervisor_that_is_killed() -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert supervisor.stdout is not None
    pid = int(supervisor.stdout.readline())
    folder = ""
    try:
        assert becomes(lambda: stat(pid)[0] == "sleep")
        folder = os.readlink(f"/proc/{pid}/cwd")
        os.kill(pid, signal.SIGSTOP)
        assert becomes(lambda: stat(pid)[1] == "T")
        supervisor.kill()
        supervisor.communicate()
        assert becomes(lambda: stat(pid)[1] in "ZX")
    finally:
        supervisor.kill()
        if stat(pid)[1] not in "ZX":
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_program_does_not_start_when_its_supervisor_is_gone_already() -> None:
    for parent, printed in ((os.getpid(), "ran\n"), (os.getppid(), "")):
        command = dying_with_us(["/bin/echo", "ran"], parent)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout == printed


ODD = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
libc.prctl(15, b"\\xff(\\xfe", 0, 0, 0)
held = bytearray(64 << 20)
threading.Thread(target=time.sleep, args=(60,)).start()
print("ready", flush=True)
libc.syscall(60, 0)  # the first thread ends, and the other lives on
"""


def test_a_process_with_an_odd_name_and_no_first_thread_is_seen_and_counted() -> None:
    before = snapshot()
    with subprocess.Popen([sys.executable, "-c", ODD], stdout=subprocess.PIPE) as odd:
        try:
            assert odd.stdout is not None
            assert odd.stdout.readline() == b"ready\n"
            assert becomes(lambda: stat(odd.pid)[1] == "Z")
            assert used_bytes([odd.pid], ()) > 64 << 20
            assert odd.pid in process_table()
            assert any(str(odd.pid) in words for words in left_behind(before))
        finally:
            odd.kill()


def test_what_cannot_be_watched_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd")

    monkeypatch.setattr(process, "used_bytes", fails)
    made = Jail(limits=Limits(cpu_s=60, memory_bytes=1 << 28, processes=32))
    with process.ChildProcess(made, ["/bin/sh", "-c", "sleep 60; true"], jailed=False) as child:
        assert becomes(lambda: child.memory_exceeded)


def test_the_last_words_of_a_process_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may write and end between two looks: a compiler's only message would be lost."""
    select = process.select.select
    looks = 0

    def late(read: list[int], write: list[int], other: list[int], pause_s: float) -> object:
        nonlocal looks
        looks += 1
        if looks > 1:
            return select(read, write, other, pause_s)
        assert becomes(lambda: stat(child.pid)[1] in "ZX")
        return [], [], []

    monkeypatch.setattr(process.select, "select", late)
    made = Jail(limits=Limits(cpu_s=60, memory_bytes=1 << 28, processes=32))
    child = ChildProcess(made, ["/bin/sh", "-c", "sleep 0.1; echo error"], jailed=False)
    with child:
        assert child.wait(60) == 0
    assert child.output == "error\n"


def test_a_deadline_is_for_whoever_answers_not_for_a_supervisor_that_was_stopped() -> None:
    with closing(Channel()) as channel:
        os.write(channel.child_descriptor, b"done")
        channel.allow(-60)  # this process was stopped for a minute, or its host was suspended
        assert channel.read(4) == b"done"
        with pytest.raises(ChannelTimeout):
            channel.read(1)
        channel.send(b"call")
        assert os.read(channel.child_descriptor, 4) == b"call"


def test_a_forked_process_starts_the_library_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Utilities:
        def __init__(self) -> None:
            started.append(os.getpid())

    monkeypatch.setattr(nvml, "_Utilities", Utilities)
    nvml._of_process.cache_clear()
    try:
        assert nvml._nvml() is nvml._nvml()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        nvml._nvml()
        assert len(started) == 2
    finally:
        nvml._of_process.cache_clear()


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(processors, "_SYSTEM", tmp_path)
    processors._siblings.cache_clear()
    yield tmp_path
    processors._siblings.cache_clear()


def name_siblings(system: Path, *cores: tuple[int, ...]) -> None:
    for core in cores:
        for cpu in core:
            folder = system / f"cpu{cpu}" / "topology"
            folder.mkdir(parents=True)
            (folder / "thread_siblings_list").write_text(",".join(map(str, core)) + "\n")


@pytest.mark.parametrize(
    ("cores", "processors", "grouped", "measured"),
    [
        ([(0, 4), (1, 5), (2, 6), (3, 7)], range(8), [[0, 4], [1, 5], [2, 6], [3, 7]], [1, 2, 3]),
        ([(0, 4), (1, 5), (2, 6), (3, 7)], [2, 6, 7], [[2, 6], [7]], [7]),
        ([(0, 1)], [0, 1], [[0, 1]], [1]),  # a single core is shared
        ([(0, 1)], [1], [[1]], [1]),
        ([], [3, 1], [[1], [3]], [3]),  # a host that does not name cores has one a processor
    ],
)
def test_a_thread_of_each_core_but_the_first(
    system: Path,
    cores: list[tuple[int, ...]],
    processors: Sequence[int],
    grouped: list[list[int]],
    measured: list[int],
) -> None:
    name_siblings(system, *cores)
    assert by_core(processors) == grouped
    assert measured_of(processors) == measured


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_the_supervisor_keeps_off_meanwhile() -> None:
    before = os.sched_getaffinity(0)
    measured = measured_of(before)
    with keeping_off(measured):
        assert not os.sched_getaffinity(0) & set(measured)
    assert os.sched_getaffinity(0) == before
    with keeping_off(before):  # there may be nowhere else to go
        assert os.sched_getaffinity(0) == before


LARGE = 'held=$(head -c 500000000 /dev/zero | tr "\\0" a); echo ready; sleep 60; echo "$held"'


def test_nothing_of_a_tree_that_was_killed_is_left() -> None:
    """The jail around it dies at once, and a process that holds much takes longer."""
    made = Jail(limits=Limits(cpu_s=60, memory_bytes=4 << 30, processes=32))
    with ChildProcess(made, ["/bin/sh", "-c", LARGE], jailed=True) as child:
        assert becomes(lambda: "ready" in child.output)
        tree = process.descendants(child.pid)
        child.kill()
        assert [pid for pid in tree if stat(pid)[1] not in "ZX"] == []
