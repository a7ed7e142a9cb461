"""A process without a jail ends with whoever started it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gpu_runner.supervisor.process import dying_with_us

COORDINATOR = """
import sys
from gpu_runner.supervisor.jail import Jail, Limits
from gpu_runner.supervisor.process import ChildProcess

made = Jail(limits=Limits(cpu_s=60, memory_bytes=1 << 28, processes=32))
child = ChildProcess(made, ["/bin/sleep", "60"], jailed=False, measured=True)
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
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return "", "X"
    return head.partition("(")[2], tail.split()[0]


def test_a_stopped_bare_process_dies_with_a_coordinator_that_is_killed() -> None:
    coordinator = subprocess.Popen(
        [sys.executable, "-c", COORDINATOR],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert coordinator.stdout is not None
    pid = int(coordinator.stdout.readline())
    folder = ""
    try:
        assert becomes(lambda: stat(pid)[0] == "sleep")
        folder = os.readlink(f"/proc/{pid}/cwd")
        os.kill(pid, signal.SIGSTOP)
        assert becomes(lambda: stat(pid)[1] == "T")
        coordinator.kill()
        coordinator.communicate()
        assert becomes(lambda: stat(pid)[1] in "ZX")
    finally:
        coordinator.kill()
        if stat(pid)[1] not in "ZX":
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_program_does_not_start_when_its_coordinator_is_gone_already() -> None:
    for parent, printed in ((os.getpid(), "ran\n"), (os.getppid(), "")):
        command = dying_with_us(["/bin/echo", "ran"], parent)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout == printed
