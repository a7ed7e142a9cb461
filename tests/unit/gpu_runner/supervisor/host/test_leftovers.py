"""What is left behind is found, and what other processes do is not mistaken for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import pytest

from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.leftovers import dying
from gpu_runner.supervisor.host.process import ChildProcess
from tests.leftovers import Snapshot, left_behind, snapshot


def soon(before: Snapshot, words: str) -> bool:
    """Whether something with these words in its name is found soon."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any(words in line for line in left_behind(before, 0)):
            return True
    return False


def test_a_running_child_an_unclosed_file_and_a_folder_are_found() -> None:
    before = snapshot()
    assert left_behind(before, 0) == []
    child = subprocess.Popen(["sleep", "30"])
    descriptor = os.memfd_create("kbench-forgotten")
    with tempfile.TemporaryDirectory(prefix="kbench-"):
        found = "\n".join(left_behind(before, 0))
    child.kill()
    assert f"process {child.pid} (sleep)" in found
    assert "memfd:kbench-forgotten" in found
    assert "file /tmp/kbench-" in found
    assert [line for line in left_behind(before, 0) if "zombie" in line]
    child.wait()
    os.close(descriptor)
    assert left_behind(before) == []


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
def test_a_jail_is_found_while_it_runs_and_leaves_nothing() -> None:
    before = snapshot()
    made = Jail(limits=Limits(cpu_s=20, memory_bytes=1 << 28, processes=32))
    with ChildProcess(made, ["/bin/bash", "-c", "echo up; sleep 300"], jailed=True) as child:
        assert soon(before, "(sleep)")
        assert child.running
    assert left_behind(before) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="jails have users of their own only under root")
def test_an_orphan_of_a_dead_supervisor_is_found() -> None:
    before = snapshot()
    uid = str(jail.FIRST_JAIL_UID + 7)
    script = (
        f"setsid setpriv --reuid={uid} --regid={uid} --clear-groups sleep 30 >/dev/null & echo $!"
    )
    done = subprocess.run(["/bin/sh", "-c", script], stdout=subprocess.PIPE, check=True, text=True)
    assert soon(before, f"of user {uid}")
    os.kill(int(done.stdout.split()[0]), 9)
    assert left_behind(before) == []


def test_a_process_is_dying_once_all_of_its_threads_are() -> None:
    leaderless = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(30,)).start()\n"
        "print('up', flush=True)\n"
        "ctypes.CDLL(None).syscall(60, 0)"  # exit of this thread alone, on x86-64
    )
    with subprocess.Popen([sys.executable, "-c", leaderless], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.2)
        assert not dying(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert dying(child.pid)
