"""The client against the site in this process, with a token and a home of its own."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from kbench_client import main as client
from kbench_client.site import Site
from tests import factories as make


@dataclass
class Ran:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it printed with `--json`."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of configurations, in a working directory of its own."""
    for name in ("KBENCH_URL", "KBENCH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def site(jobs: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The site answers whatever the client asks, without a network."""
    transport = httpx2.WSGITransport(get_wsgi_application())
    connected = functools.partial(Site, transport=transport)
    for name in ("kbench_client.main.Site", "kbench_client.commands.login.Site"):
        monkeypatch.setattr(name, connected)
    monkeypatch.setenv("KBENCH_URL", "http://localhost")
    for signal in (request_started, request_finished):  # as Django's own test client does
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def ada(site: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A user, whose token the client shows."""
    user = make.make_user(username="ada")
    monkeypatch.setenv("KBENCH_TOKEN", make.make_token(user))
    return user


@pytest.fixture
def kbench(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command."""

    def run(*words: str) -> Ran:
        try:
            status = client.main(words)
        except SystemExit as ended:
            status = int(str(ended.code))
        printed = capsys.readouterr()
        return Ran(status, printed.out, printed.err)

    return run


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that `gpu_runner`, which is not run, is called with."""
    seen: list[list[str]] = []

    def run(words: list[str], **_: Any) -> Any:
        seen.append(words)
        return subprocess.CompletedProcess(words, 2, "", "gpu_runner: no")

    monkeypatch.setattr("kbench_client.commands.local.missing", lambda: [])
    monkeypatch.setattr("kbench_client.commands.local.subprocess.run", run)
    return seen
