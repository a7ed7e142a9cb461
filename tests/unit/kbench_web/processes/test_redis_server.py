"""The programs of an installation; its Redis keeps data and logins, and lets nobody else in."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, RedisError

from kbench_web.processes import installation, redis_server
from kbench_web.processes.supervision import ProgramProcess
from tests.conftest import free_port


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
