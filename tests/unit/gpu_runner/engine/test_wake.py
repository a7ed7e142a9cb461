"""Before a call, a team that fits the processors is awake, and no other thread wants to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

THREADS_AFTER_WAKING = """
import ctypes, os, sys
openmp = ctypes.CDLL("libgomp.so.1")
support = ctypes.CDLL(sys.argv[1])
openmp.omp_set_num_threads(int(sys.argv[2]))
support.kb_wake()
print(len(os.listdir("/proc/self/task")))
"""

WORK_LEFT = """
import ctypes, hashlib, os, sys, threading
support = ctypes.CDLL(sys.argv[1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one processor for both
data = bytes(1 << 17)  # some 0.1 ms, in which Python's lock is free
left = 0
for _ in range(50):
    done = threading.Event()
    threading.Thread(target=lambda: (hashlib.sha256(data), done.set())).start()
    if sys.argv[2] == "settle":
        support.kb_settle()
    left += not done.is_set()
print(left)
"""


def printed(script: str, *arguments: object) -> int:
    """What a script prints when it runs by itself."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def processors() -> int:
    return printed("import os; print(len(os.sched_getaffinity(0)))")


def test_a_team_with_a_processor_for_each_thread_is_woken(support: Path) -> None:
    if (count := processors()) < 2:
        pytest.skip("a team needs two processors")
    assert printed(THREADS_AFTER_WAKING, support, count) == count


def test_a_larger_team_sleeps_on(support: Path) -> None:
    assert printed(THREADS_AFTER_WAKING, support, processors() + 1) == 1


def test_threads_that_are_soon_done_are_waited_for(support: Path) -> None:
    assert printed(WORK_LEFT, support, "settle") < printed(WORK_LEFT, support, "nothing") / 2
