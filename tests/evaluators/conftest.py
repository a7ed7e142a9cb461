"""A real site in a process of its own, which these tests ask as anybody would.

`make evaluators` runs them in an environment that has the other projects' packages, but no Django:
the site runs in this project's own.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass
class LocalSite:
    """The site's process; may be killed and started again."""

    folder: Path
    port: int
    token: str = ""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.evaluators.settings",
            "DATABASE_URL": f"sqlite:///{self.folder}/db.sqlite3",
            "KBENCH_DATA_DIR": str(self.folder),
            "PYTHONPATH": str(ROOT),
        }
        python = os.environ.get("KBENCH_TEST_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
        words = [python, "-m", "tests.evaluators.local_site", str(self.port)]
        self.process = subprocess.Popen(
            words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.token = self.process.stdout.readline().strip()
        assert self.token, "the site did not start"

    def kill(self) -> None:
        """End it without a warning."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture(scope="session")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSite]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    site = LocalSite(tmp_path_factory.mktemp("site"), port)
    site.start()
    yield site
    site.kill()


@pytest.fixture
def site(whole_site: LocalSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LocalSite:
    """The site, which the client's configuration names."""
    monkeypatch.setenv("KBENCH_URL", whole_site.url)
    monkeypatch.setenv("KBENCH_TOKEN", whole_site.token)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return whole_site
