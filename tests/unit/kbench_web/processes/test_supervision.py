"""Programs that are stopped, or lose their supervisor, leave nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kbench_web.processes.supervision import (
    Program,
    ProgramProcess,
    Supervisor,
    descendants,
)

SLEEPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
FAMILY = (
    "import subprocess, sys, time;"
    f"subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], start_new_session=True);"
    "print('started', flush=True); time.sleep(60)"
)


def python(code: str) -> Program:
    return Program(name="program", command=[sys.executable, "-c", code])


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


class Log(list[tuple[str, str]]):
    """What was said, and a way to wait for it."""

    def say(self, name: str, text: str) -> None:
        self.append((name, text))

    def texts(self) -> str:
        return "\n".join(text for _, text in self)


@pytest.fixture
def log() -> Log:
    return Log()


def tick_until(supervisor: Supervisor, done: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline
        supervisor.tick()


@pytest.mark.parametrize("stubborn", [True, False])
def test_stopping_leaves_nothing_behind(log: Log, stubborn: bool) -> None:
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" if stubborn else ""
    others = descendants(os.getpid())
    supervisor = Supervisor(log.say)
    supervisor.add(python(ignore + FAMILY))
    tick_until(supervisor, lambda: "started" in log.texts())
    family = [pid for pid in descendants(os.getpid()) if pid not in others]
    supervisor.stop(0.5, lambda: False)
    time.sleep(0.2)
    assert len(family) == 2
    assert [pid for pid in family if alive(pid)] == []
    assert ("does not stop: killed" in log.texts()) is stubborn


def test_programs_stop_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from kbench_web.processes.supervision import Program, ProgramProcess\n"
        "p = ProgramProcess(Program(name='p', command=['sleep', '60']), print)\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    log = Log()
    outer = ProgramProcess(python(code), log.say)
    while not log:
        time.sleep(0.05)
    inner = int(log[0][1])
    time.sleep(0.3)
    assert alive(inner)
    os.kill(outer.pid, signal.SIGKILL)
    time.sleep(0.5)
    assert not alive(inner)
