"""Programs are kept running, and none is left behind."""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbench_web.processes import installation
from kbench_web.processes.supervision import (
    Console,
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


def python(code: str, name: str = "program", *, stop_last: bool = False) -> Program:
    return Program(name=name, command=[sys.executable, "-c", code], stop_last=stop_last)


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


@pytest.fixture
def supervisor(log: Log) -> Iterator[Supervisor]:
    supervisor = Supervisor(log.say)
    yield supervisor
    supervisor.stop(0, lambda: True)


def tick_until(supervisor: Supervisor, done: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline
        supervisor.tick()


def test_a_program_that_dies_is_started_again_after_a_pause(
    supervisor: Supervisor, log: Log, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    code = f"open({str(marks)!r}, 'a').write('x'); print('hello'); raise SystemExit(3)"
    supervisor.add(python(code))
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    supervisor.add(python(killed, "killed"))
    tick_until(supervisor, lambda: marks.exists() and len(marks.read_text()) == 2)
    assert [text for name, text in log if name == "program"][:2] == [
        "hello", "ended with status 3; starting again in 0.5 s",
    ]  # fmt: skip
    tick_until(supervisor, lambda: log.texts().count("again in 1 s") == 2)


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


def test_what_others_need_stops_last(log: Log) -> None:
    code = (
        "import signal, sys, time;"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep({}), print('bye'), sys.exit()));"
        "print('up'); time.sleep(60)"
    )
    supervisor = Supervisor(log.say)
    supervisor.add(python(code.format(0), "store", stop_last=True))
    supervisor.add(python(code.format(0.5), "user"))
    tick_until(supervisor, lambda: log.texts().count("up") == 2)
    supervisor.stop(10, lambda: False)
    assert [name for name, text in log if text == "bye"] == ["user", "store"]


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


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not installation.is_free("127.0.0.1", port)
        assert installation.next_free("127.0.0.1", port) > port


def test_lines_carry_time_and_name() -> None:
    out = io.StringIO()
    clock = lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)  # noqa: E731
    Console(out, ["web", "runner"], clock).line("web", "hello")
    assert out.getvalue() == "03:04:05 web    | hello\n"


def test_gpus_are_those_that_the_driver_lists_and_the_variable_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for says, chosen, expected in (
        ("GPU-a\nGPU-b", None, [0, 1]),
        ("GPU-a\nGPU-b", "1", [1]),
        ("No devices were found", None, []),
    ):
        program.write_text(f"#!/bin/sh\necho '{says}'\n")
        program.chmod(0o755)
        if chosen is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
        else:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        assert installation.cuda_devices() == expected
