"""A whole installation as a newcomer starts it: it serves, survives kills, and leaves nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kbench_web.processes.program import descendants
from tests.conftest import free_port

ROOT = Path(__file__).parents[2]
UNSET = {"DATABASE_URL", "REDIS_URL", "KBENCH_CACHE", "KBENCH_CATALOG", "DJANGO_SETTINGS_MODULE"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timed,
    pytest.mark.timeout(480),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="no jail can be made here"),
]


class Installation:
    """A running `manage.py up` and what it printed."""

    def __init__(self, folder: Path) -> None:
        """Start it with all its data in `folder`."""
        environment = {name: value for name, value in os.environ.items() if name not in UNSET}
        self.environment = environment | {"KBENCH_DATA_DIR": str(folder)}
        self.command = [sys.executable, "manage.py", "up", "--port", str(free_port()), "--no-demo"]
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
        return "".join(list(self.lines))

    def wait_for(self, pattern: str, timeout_s: float = 120) -> str:
        """Wait until a line matches; return the match's first group."""
        found: list[str] = []

        def seen() -> bool:
            found[:] = re.findall(pattern, self.log())
            return bool(found)

        self.wait(seen, f"no line like {pattern!r}", timeout_s)
        return found[0]

    def wait(self, condition: Callable[[], Any], what: str, timeout_s: float = 120) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"{what}\n{self.log()}"
            assert self.process.poll() is None, self.log()
            time.sleep(0.1)

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            content: bytes = answer.read()
            return content

    def submit_demo(self) -> tuple[str, str]:
        """Paths of the demo's submission and run, entered as at the command line."""
        environment = self.environment | {"REDIS_URL": self.wait_for(r"REDIS_URL=(\S+)")}
        command = [sys.executable, "manage.py", "demo"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        submission, run = (line.rstrip("/") for line in done.stdout.splitlines())
        return submission, run

    def evaluation(self, path: str) -> dict[str, Any]:
        """The one evaluation of a submission, as the API shows it."""
        [found] = json.loads(self.get(f"/api/v1{path}"))["evaluations"]
        return dict(found)

    def run(self, path: str) -> dict[str, Any]:
        """A run, as the API shows it."""
        return dict(json.loads(self.get(f"/api/v1{path}")))

    def pid_of(self, words: str) -> int:
        """The oldest descendant whose command line holds `words`."""
        for pid in descendants(self.process.pid):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            if words.encode() in line:
                return pid
        raise AssertionError(f"no process like {words!r}")


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    running = Installation(tmp_path / "data")
    yield running
    for pid in [*descendants(running.process.pid), running.process.pid]:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    running.process.wait()


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def check_that_the_run_survives(installation: Installation, run: str) -> None:
    """Kill the workers of runs and of calls: none is left over, and the run gets on."""
    pool = installation.pid_of("rqworker-pool calls")
    installation.wait(lambda: len(descendants(pool)) >= 2, "the pool starts no workers")
    workers = descendants(pool)
    for program, pid in (("runs", installation.pid_of("rqworker runs")), ("calls", pool)):
        os.kill(pid, signal.SIGKILL)
        installation.wait_for(rf"{program} +\| ended with status (-9)")
    installation.wait(lambda: not any(map(alive, workers)), "workers outlive their pool")
    # What was lost with a worker is looked for once a minute, and taken up again.
    installation.wait(
        lambda: is_improved(installation.run(run)), "the run finds nothing better", timeout_s=300
    )
    assert installation.run(run)["status"] in ("RUNNING", "FINISHED")


def is_improved(run: dict[str, Any]) -> bool:
    """Whether a run has found a kernel that is faster than its seed.

    Or than nothing: what was measured while a daemon started beside it may be UNSTABLE.
    """
    best, seed = run["best_latency_ns"], run["seed_latency_ns"]
    return best is not None and (seed is None or best < seed)


def test_it_serves_survives_a_killed_runner_and_stops_cleanly(installation: Installation) -> None:
    installation.url = installation.wait_for(r"kbench is ready at (http://\S+?)/ ")
    assert b"<html" in installation.get("/")
    demo, run = installation.submit_demo()
    first = installation.evaluation(demo)

    installation.wait(
        lambda: installation.evaluation(demo)["status"] != "QUEUED",
        "the demo is never taken",
    )
    os.kill(installation.pid_of("gpu_runner work"), signal.SIGKILL)
    installation.wait_for(r"cpu +\| ended with status (-9)")
    installation.wait(
        lambda: installation.evaluation(demo)["status"] == "FINISHED",
        "the demo never ends",
    )
    evaluation = installation.evaluation(demo)
    assert evaluation["id"] == first["id"]
    assert evaluation["verdict"] in ("CORRECT", "UNSTABLE"), evaluation  # audits run beside it

    check_that_the_run_survives(installation, run)

    again = subprocess.run(
        installation.command,
        cwd=ROOT,
        env=installation.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert again.returncode != 0
    assert "already running" in again.stderr

    family = descendants(installation.process.pid)
    assert len(family) >= 6
    installation.process.send_signal(signal.SIGTERM)
    assert installation.process.wait(60) == 0
    assert [pid for pid in family if alive(pid)] == []


def test_a_redis_that_does_not_answer_is_named(tmp_path: Path) -> None:
    environment = os.environ | {
        "KBENCH_DATA_DIR": str(tmp_path),
        "REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--port", str(free_port())],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "REDIS_URL is redis://127.0.0.1" in done.stderr
    assert "unset REDIS_URL" in done.stderr
