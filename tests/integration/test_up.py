"""A whole installation as a newcomer starts it: it serves, survives kills, and leaves nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import mcp
import pytest
from mcp import StdioServerParameters
from redis import Redis
from redis.exceptions import NoPermissionError, RedisError

from kbench_web.processes.supervision import descendants
from tests.conftest import free_port
from tests.installation import ROOT, UNSET, Installation, few_tasks, is_alive

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="no jail can be made here"),
]


class DemoInstallation(Installation):
    """An installation whose demo is submitted by the test."""

    def submit_demo(self) -> tuple[str, str]:
        """Paths of the demo's submission and run, entered as at the command line."""
        done = self.manage("demo")
        submission, run = (line.rstrip("/") for line in done.splitlines())
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
        for pid in self.family():
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            if words.encode() in line:
                return pid
        raise AssertionError(f"no process like {words!r}")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("false", id="by itself"),
        # Hundreds of evaluations then want both cores beside all else that `make test` does.
        pytest.param("true", id="beside its shipped kernels", marks=pytest.mark.thorough),
    ],
)
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DemoInstallation]:
    """One for both tests: its tables and all of its tasks take half a minute of a processor."""
    settings = {"KBENCH_SUBMIT_SHIPPED_KERNELS": request.param}
    folder = tmp_path_factory.mktemp("up")
    if request.param == "false":  # those of the demo and the guide; the browser's sites have all
        settings |= few_tasks(folder, "matrix_mul", "softmax", "vector_add")
    running = DemoInstallation(folder / "data", "--no-demo", settings=settings)
    yield running
    running.kill()


@contextmanager
def saying_what_was_printed(installation: DemoInstallation) -> Iterator[None]:
    """What fails inside says also what the site printed."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{error}\nthe site printed:\n{installation.log()}") from None


def commands_of(guide: str) -> list[str]:
    """The ten lines of the guide for agents."""
    return guide.split("```sh\n")[1].split("```", maxsplit=1)[0].strip().splitlines()


def check_that_an_agent_gets_a_verdict(installation: DemoInstallation, home: Path) -> None:
    """Follow the guide, line by line, with nothing but what it says and a token.

    The client is unpacked from the site's wheel in place of the guide's `pip install`: a test has
    no network. The line that ranks would measure for minutes, so it is left to the mode `test`.
    """
    home = home / "agent"
    home.mkdir()
    lines = commands_of(installation.get("/agents.md").decode())
    assert len(lines) == 10
    wheel = lines[1].split('"')[1]
    with zipfile.ZipFile(BytesIO(installation.get(wheel.removeprefix(installation.url)))) as packed:
        packed.extractall(home / "client")
    installation.manage("shell", "-v", "0", "-c", _ROBOT_AND_CUP)
    token = installation.manage("create_token", "robot").strip()
    client = Client(home, {"KBENCH_URL": installation.url, "KBENCH_TOKEN": token})
    python = f"{sys.executable} -P -m kbench_client.main"
    script = ["set -e", f'kbench() {{ {python} "$@"; }}', *lines[3:8]]
    done = client.run("bash", "-c", "\n".join(script))
    assert "\nCORRECT" in done.stdout
    assert (home / "work/reference.py").exists()
    assert "warning" not in done.stderr
    here = ("evaluate", "mine.cpp", "--folder", "work", "--mode", "test")
    told = client.run(sys.executable, "-P", "-m", "kbench_client.main", *here)
    assert "CORRECT" in told.stdout
    check_the_notebook(installation, client)
    asyncio.run(check_the_tools(client))
    check_that_an_agent_competes(installation, client)


@dataclass(frozen=True)
class Client:
    """The client that the site serves, unpacked in a folder, as somebody with a token has it."""

    home: Path
    settings: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """Nothing but what the guide says."""
        own = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        return own | self.settings | {"PYTHONPATH": f"{self.home}/client"}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """What a command says that succeeds."""
        done = subprocess.run(
            command,
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done


_ROBOT_AND_CUP = """
from datetime import timedelta
from django.contrib.auth.models import User
from django.utils import timezone
from runs_app.features.challenges.services import make_challenge
now = timezone.now()
User.objects.create_user("robot")
make_challenge(
    user=User.objects.create_superuser("judge"), name="Cup", tasks=["vector_add"], device="cpu",
    evaluations=2, wall_time_s=3600, starts_at=now, ends_at=now + timedelta(days=1), now=now,
)
"""


def check_that_an_agent_competes(installation: DemoInstallation, client: Client) -> None:
    """Enter a challenge, and finish it while a submission is under way: the site ranks it later."""
    kbench = (sys.executable, "-P", "-m", "kbench_client.main")
    told = client.run(*kbench, "challenge", "cup", "--enter", "--agent", "racer", "--json")
    entered = json.loads(told.stdout)
    entry = entered["id"]
    racer = Client(client.home, client.settings | {"KBENCH_TOKEN": entered["token"]})
    racer.run(*kbench, "submit", "mine.cpp", "--device", "cpu", "--mode", "test")
    racer.run(*kbench, "challenge", entry, "--usd", "1", "--finish")

    def state() -> dict[str, Any]:
        return dict(json.loads(installation.get(f"/api/v1/entries/{entry}")))

    installation.wait(lambda: state()["state"].startswith("rank"), "the entry is never ranked")
    (task,) = state()["tasks"]
    assert task["used"] == 1
    assert task["best_latency_ns"] > 0


def check_the_notebook(installation: DemoInstallation, client: Client) -> None:
    """Run its cells, one after another."""
    cells = json.loads(installation.get("/client/kbench.ipynb"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    done = client.run(sys.executable, "-P", "-c", "\n".join(sources))
    assert "CORRECT" in done.stdout
    assert "WRONG_RESULT" in done.stdout
    assert "against the first: [1.0" in done.stdout


async def check_the_tools(client: Client) -> None:
    """Speak MCP with `kbench mcp`, over its standard input and output."""
    words = ["-P", "-m", "kbench_client.main", "mcp"]
    server = StdioServerParameters(command=sys.executable, args=words, env=client.environment)
    async with mcp.Client(server) as agent:
        tools = {tool.name for tool in (await agent.list_tools()).tools}
        assert "submit" in tools
        answer = await agent.call_tool("get_task", {"task": "vector_add"})
        assert "void vector_add" in answer.structured_content["README.md"]


def check_that_the_run_survives(installation: DemoInstallation, run: str) -> None:
    """Kill the workers of runs and of calls: none is left over, and the run gets on."""
    pool = installation.pid_of("rqworker-pool calls")
    installation.wait(lambda: len(descendants(pool)) >= 2, "the pool starts no workers")
    workers = descendants(pool)
    for program, pid in (("runs", installation.pid_of("rqworker runs")), ("calls", pool)):
        os.kill(pid, signal.SIGKILL)
        installation.wait_for(rf"{program} +\| ended with status (-9)")
    installation.wait(lambda: not any(map(is_alive, workers)), "workers outlive their pool")
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


def test_nobody_else_on_this_machine_reaches_what_a_site_holds(
    installation: DemoInstallation,
) -> None:
    installation.wait_until_ready()
    ports = re.findall(r"Redis: port (\d+)", installation.log())
    assert len(ports) == 2
    for port in ports:
        with pytest.raises(RedisError):
            Redis.from_url(f"redis://127.0.0.1:{port}/0").ping()
    runner = Path(f"/proc/{installation.pid_of('gpu_runner work')}/environ").read_bytes()
    login = next(word for word in runner.split(b"\0") if word.startswith(b"REDIS_URL="))
    with Redis.from_url(login.removeprefix(b"REDIS_URL=").decode()) as redis:
        assert redis.ping()
        with pytest.raises(NoPermissionError):
            redis.keys("*")
    for secret in (b"DATABASE_URL", b"SECRET_KEY", b"KBENCH_RUNNERS_REDIS_URL"):
        assert secret not in runner
    for pid in installation.family():
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
            assert b"redis://" not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_it_serves_survives_a_killed_runner_and_stops_cleanly(
    installation: DemoInstallation, tmp_path: Path
) -> None:
    installation.wait_until_ready()
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

    with saying_what_was_printed(installation):
        check_that_an_agent_gets_a_verdict(installation, tmp_path)
    check_that_the_run_survives(installation, run)

    again = subprocess.run(
        installation.command,
        cwd=ROOT,
        env=installation.environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert again.returncode != 0
    assert "already running" in again.stderr

    family = installation.family()
    assert len(family) >= 6
    installation.process.send_signal(signal.SIGTERM)
    assert installation.process.wait(240) == 0
    assert [pid for pid in family if is_alive(pid)] == []


@pytest.mark.parametrize("variable", ["REDIS_URL", "KBENCH_RUNNERS_REDIS_URL"])
def test_a_redis_that_does_not_answer_is_named(tmp_path: Path, variable: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in UNSET}
    environment |= {
        "KBENCH_DATA_DIR": str(tmp_path),
        variable: f"redis://127.0.0.1:{free_port()}/0",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--port", str(free_port())],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode != 0
    assert f"{variable} is set, but nothing answers there" in done.stderr
    assert "unset the variable" in done.stderr
