"""Programs are kept running, and none is left behind; Redis keeps data and lets nobody else in."""

from __future__ import annotations

import io
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, RedisError

from kbench_web.processes import installation, redis_server
from kbench_web.processes.supervision import (
    Console,
    Program,
    ProgramProcess,
    Supervisor,
    descendants,
)
from tests.conftest import free_port
from tests.installation import is_alive

SLEEPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
FAMILY = (
    "import subprocess, sys, time;"
    f"subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], start_new_session=True);"
    "print('started', flush=True); time.sleep(60)"
)


def python(code: str, name: str = "program", *, stop_last: bool = False) -> Program:
    return Program(name=name, command=[sys.executable, "-c", code], stop_last=stop_last)


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
    assert [pid for pid in family if is_alive(pid)] == []
    assert ("did not stop, so it was killed" in log.texts()) is stubborn


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
    assert is_alive(inner)
    os.kill(outer.pid, signal.SIGKILL)
    time.sleep(0.5)
    assert not is_alive(inner)


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


@contextmanager
def running(folder: Path, port: int) -> Iterator[Redis]:
    """The server, and a connection of the site to it."""
    url = redis_server.prepare(folder, port)
    process = ProgramProcess(redis_server.program("redis", folder, port), lambda *_: None)
    try:
        assert redis_server.wait(url) == ""
        with Redis.from_url(url) as client:
            yield client
    finally:
        process.terminate()
        while process.status is None:
            time.sleep(0.05)


def test_data_and_logins_of_runners_stay_over_a_restart_on_another_port(tmp_path: Path) -> None:
    port = free_port()
    with running(tmp_path, port) as site:
        site.set("key", 1)
        site.execute_command("ACL", "SETUSER", "runner-1", "on", ">pw", "~own", "-@all", "+get")
        site.execute_command("ACL", "SAVE")
    port = free_port()
    with running(tmp_path, port) as site:
        assert site.get("key") == b"1"
        with Redis.from_url(f"redis://runner-1:pw@127.0.0.1:{port}/0") as runner:
            assert runner.get("own") is None
        assert urlsplit((tmp_path / "url").read_text().strip()).port == port


def test_nobody_gets_in_without_the_sites_password(tmp_path: Path) -> None:
    port = free_port()
    with running(tmp_path, port):
        for login in ("", "default:@", "site:@", "site:wrong@", "runner-1:pw@"):
            with pytest.raises((AuthenticationError, RedisError)):
                Redis.from_url(f"redis://{login}127.0.0.1:{port}/0").get("key")


def test_each_installation_has_a_password_of_its_own_that_others_cannot_read(
    tmp_path: Path,
) -> None:
    first, second = (redis_server.prepare(tmp_path / name, 6379) for name in "ab")
    assert urlsplit(first).password != urlsplit(second).password
    assert redis_server.prepare(tmp_path / "a", 6379) == first
    for name in ("url", redis_server.USERS):
        assert stat.S_IMODE((tmp_path / "a" / name).stat().st_mode) == 0o600
    password = urlsplit(first).password or ""
    assert len(password) > 40
    assert password not in (tmp_path / "a" / redis_server.USERS).read_text()
    command = redis_server.program("redis", tmp_path / "a", 6379).command
    assert password not in " ".join(command)  # others see command lines


def test_it_is_said_why_a_server_does_not_answer() -> None:
    assert "refused" in redis_server.answers(f"redis://127.0.0.1:{free_port()}/0")
    assert redis_server.answers("redis://nowhere.invalid:1/0")
    assert redis_server.answers("nonsense")


LOGIN = "redis://runner-1:secret@127.0.0.1:6380/0"
OURS = {
    "PATH": "/bin",
    "HOME": "/home/kbench",
    "LC_ALL": "C",
    "CUDA_HOME": "/usr/local/cuda",
    "KBENCH_CACHE": "/cache",
    "DATABASE_URL": "postgres://kbench:secret@db/kbench",
    "REDIS_URL": "redis://site:secret@127.0.0.1:6379/0",
    "KBENCH_RUNNERS_REDIS_URL": "redis://site:secret@127.0.0.1:6380/0",
    "KBENCH_SECRET_KEY": "secret",
    "KBENCH_KEY_OPENAI": "secret",
    "OPENAI_API_KEY": "secret",
    "NVIDIA_API_KEY": "secret",
    "HOMEBREW_GITHUB_API_TOKEN": "secret",
    "EMAIL_HOST_PASSWORD": "secret",
}


def test_a_site_that_measures_nothing_has_no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "cuda_devices", lambda: [0, 1])
    names = [each.name for each in installation.programs("127.0.0.1", 8000, call_workers=1)]
    assert names == ["web", "ingest", "runs", "calls"]
    assert [each.name for each in installation.runners(LOGIN)] == ["cpu", "cuda-0", "cuda-1"]


def test_a_runner_gets_its_login_and_nothing_that_is_the_sites() -> None:
    runner, *_ = installation.runners(LOGIN)
    assert runner.variables(OURS) == {
        **{name: OURS[name] for name in ("PATH", "HOME", "LC_ALL", "CUDA_HOME", "KBENCH_CACHE")},
        "REDIS_URL": LOGIN,
        "PYTHONUNBUFFERED": "1",
    }
    assert LOGIN not in runner.command  # others see command lines


def test_the_sites_programs_get_all() -> None:
    for program in installation.programs("127.0.0.1", 8000, call_workers=1):
        assert program.variables(OURS) == OURS | {"PYTHONUNBUFFERED": "1"}
