"""A whole site in processes of its own, and a browser that looks at it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.browser.fake_runner import FakeRunner
from tests.conftest import BROWSERS, RedisServer, free_port, keep

ROOT = Path(__file__).parents[2]
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_UNSET = {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "KBENCH_DATA_DIR"}
_START_TIMEOUT_S = 240.0
_PAGE_TIMEOUT_MS = 60_000
MANY = 800
"""Candidates of the run that is invented."""
expect.set_options(timeout=_PAGE_TIMEOUT_MS)  # other tests run beside the browser's


@dataclass
class Stack:
    """Redis, the site's web server and its ingester, with data in a folder of their own."""

    folder: Path
    redis: RedisServer
    url: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of all its processes."""
        known = {name: value for name, value in os.environ.items() if name not in _UNSET}
        return known | {
            "KBENCH_DATA_DIR": str(self.folder),
            "REDIS_URL": self.redis.url,
            "KBENCH_RUNNERS_REDIS_URL": self.redis.url,
            "DJANGO_SETTINGS_MODULE": "tests.browser.settings",
            "KBENCH_COLLECTED_FILES": "1",  # as `manage.py up` serves them
            "KBENCH_SUBMIT_SHIPPED_KERNELS": "false",  # a test measures what it submits
            "KBENCH_SIGN_UPS_PER_MINUTE": "1000",  # tests open accounts faster than people
            "KBENCH_SIGN_UPS_PER_DAY": "1000",
        }

    def prepare(self) -> None:
        """Make the data of a site that has never run: tables, tasks, styles and scripts."""
        self.folder.mkdir(parents=True)
        self.redis.start()
        self.run("manage.py", "migrate", "--verbosity", "0")
        self.run("manage.py", "collectstatic", "--no-input", "--verbosity", "0")
        self.run("manage.py", "load_tasks", "--brief")

    def start(self, prepared: Path, *before: str) -> None:
        """Start with a copy of this data, and wait until the site answers.

        `before` are modules that run first: nothing else writes meanwhile.
        """
        shutil.copytree(prepared, self.folder)
        self.redis.start()
        for module in before:
            self.run("-m", module)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        daphne = ["-m", "daphne", "--port", str(port), "--verbosity", "0"]
        self.spawn("web", *daphne, "kbench_web.asgi:application")
        self.spawn("ingest", "manage.py", "ingest_events")
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            assert time.monotonic() < deadline, self.log("web")
            time.sleep(0.2)

    def run(self, *arguments: str) -> str:
        """What a Python program printed that ran to its end; it must succeed."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def spawn(self, name: str, *arguments: str, **environment: str) -> None:
        """Start a Python program that runs as long as the stack."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=self.environment | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)

    def log(self, name: str) -> str:
        """What a process printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def stop(self) -> None:
        """Stop everything, newest first."""
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.redis.stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


def _running(folder: Path) -> Stack:
    folder.mkdir(parents=True, exist_ok=True)
    return Stack(folder / "data", RedisServer(folder))


@pytest.fixture(scope="session")
def prepared(built_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of a site with the built-in tasks, made once: it takes half a minute of a processor."""
    if not (built_programs / "site").exists():
        new = _running(tmp_path_factory.mktemp("prepared"))
        try:
            new.prepare()
        finally:
            new.stop()
        keep(new.folder, built_programs / "site")
    return built_programs / "site"


@pytest.fixture(scope="session")
def stack(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A site with the built-in tasks, and without any result."""
    running = _running(tmp_path_factory.mktemp("stack"))
    try:
        running.start(prepared)
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def seeded(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A site with invented results of many authors."""
    running = _running(tmp_path_factory.mktemp("seeded"))
    try:
        running.start(prepared, "tests.browser.seed")
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def compared(seeded: Stack) -> list[str]:
    """Addresses of pages of the seeded site: a comparison of runs, a tuning, a language model."""
    return seeded.run("-m", "tests.browser.invented_comparison").split()


@pytest.fixture(scope="session")
def invented(seeded: Stack) -> str:
    """Address of a run with many candidates, of which all is invented."""
    return seeded.url + seeded.run("-m", "tests.browser.invented_run", str(MANY)).strip()


@pytest.fixture(scope="session")
def token(stack: Stack) -> str:
    """A runner's token, whose hosts the admins control."""
    return stack.run("manage.py", "shell", "-v", "0", "-c", _ADD_RUNNER).strip()


_ADD_RUNNER = """
from django.contrib.auth.models import User
from django.utils import timezone
from runs_app.models import RunnerToken
from runs_app.core.runners.tokens import add_runner
_, text = add_runner(
    name="fake", serves=RunnerToken.Serves.ANY, devices=[], trusted=True,
    user=User.objects.create_superuser("adder"), now=timezone.now(),
)
print(text)
"""


@pytest.fixture
def runner(stack: Stack, token: str) -> FakeRunner:
    """A runner that does what the test says."""
    fake = FakeRunner(stack.url, token, stack.redis.url)
    fake.beat()
    return fake


@pytest.fixture
def at_work(stack: Stack) -> Iterator[Stack]:
    """The stack with a real runner of the CPU."""
    login = stack.run("manage.py", "runner_login", "--local").strip()
    work = ("work", "--device", "cpu", "--drain-timeout", "5")
    stack.spawn("runner", "-m", "gpu_runner", *work, REDIS_URL=login)
    yield stack
    runner = stack.processes.pop()
    runner.terminate()
    runner.wait(30)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The machine's Chromium."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert path is not None, "no Chromium: install it, or leave the browser tests out"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser without cookies, whose pages may not log an error."""
    fresh = browser.new_context(reduced_motion="reduce")
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and "the server responded with" not in message.text:
            errors.append(message.text)

    fresh.on("console", note)
    fresh.on("weberror", lambda error: errors.append(str(error.error)))
    yield fresh
    fresh.close()
    assert errors == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page of that browser."""
    opened = context.new_page()
    opened.set_default_timeout(_PAGE_TIMEOUT_MS)
    return opened
