"""A whole installation, `manage.py up`, as a process of its own with all its data in one folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kbench_web.processes.supervision import descendants
from tests.conftest import free_port

ROOT = Path(__file__).parents[1]
UNSET = {
    *("DATABASE_URL", "REDIS_URL", "KBENCH_RUNNERS_REDIS_URL"),
    *("KBENCH_CACHE", "KBENCH_CATALOG", "DJANGO_SETTINGS_MODULE"),
}
STOP_S = 60.0
READY_S = 400.0
"""Its tables and tasks take half a minute of a processor, which other tests may want as well."""


def few_tasks(folder: Path, *names: str) -> dict[str, str]:
    """The setting of a catalogue of these built-in tasks: a site reads all for half a minute."""
    known = ROOT / "tasks_app"
    (folder / "catalog").mkdir(parents=True)
    for name in names:
        shutil.copytree(known / "catalog" / name, folder / "catalog" / name)
    for name in ("example", "catalog_soundness", "catalog_labels.toml"):
        (folder / name).symlink_to(known / name)
    return {"KBENCH_CATALOG": str(folder / "catalog")}


class InstallationError(AssertionError):
    """It does not do what was waited for; the text ends with what it printed."""


class Installation:
    """A running `manage.py up` and what it printed."""

    def __init__(
        self, folder: Path, *options: str, settings: Mapping[str, str] | None = None
    ) -> None:
        """Start it on a free port; `settings` are environment variables of docs/settings.md."""
        environment = {name: value for name, value in os.environ.items() if name not in UNSET}
        environment |= {"KBENCH_DATA_DIR": str(folder), **(settings or {})}
        self.environment = environment
        self.command = [sys.executable, "manage.py", "up", "--port", str(free_port()), *options]
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        self.url = ""

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def log(self) -> str:
        """All that it has printed."""
        return "".join(list(self.lines))

    def wait_for(self, pattern: str, timeout_s: float = 120) -> str:
        """Wait until a line matches; return the match's first group."""
        found: list[str] = []

        def seen() -> bool:
            found[:] = re.findall(pattern, self.log())
            return bool(found)

        self.wait(seen, f"no line like {pattern!r}", timeout_s)
        return found[0]

    def wait(
        self,
        condition: Callable[[], Any],
        what: str,
        timeout_s: float = 120,
        pause_s: float = 0.1,
    ) -> None:
        """Wait until the condition holds; raises `InstallationError` after too long."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise InstallationError(f"{what}\n{self.log()}")
            if self.process.poll() is not None:
                raise InstallationError(f"it has ended\n{self.log()}")
            time.sleep(pause_s)

    def wait_until_ready(self) -> None:
        """Wait for its address."""
        self.url = self.wait_for(r"kbench is ready at (http://\S+?)/ ", timeout_s=READY_S)

    def get(self, path: str) -> bytes:
        """The content of one of its pages."""
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            content: bytes = answer.read()
            return content

    def manage(self, *words: str, **environment: str) -> str:
        """What one of the site's commands prints, run as at the command line."""
        self.wait_for(r"the runners' Redis: (port \d+)")  # from now on it finds both of them
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise InstallationError(f"manage.py {' '.join(words)}: {done.stderr}")
        return done.stdout

    def family(self) -> list[int]:
        """Process ids of all that it has started."""
        return descendants(self.process.pid)

    def stop(self) -> None:
        """Ask it to stop; end what is left of it after a while."""
        family = self.family()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        for pid in family:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """End it and all that it has started, at once."""
        for pid in [*self.family(), self.process.pid]:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def is_alive(pid: int) -> bool:
    """Whether a process runs, and is no mere entry of one that has ended."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
