"""A site's workers as processes, a runner by script, and a language model by script."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from django.db import connection
from redis import Redis

from gpu_runner.daemon.sources import redis_source
from gpu_runner.daemon.sources.contract import Away
from gpu_runner.daemon.sources.redis_source import RedisSource
from gpu_runner.data import codec
from gpu_runner.data.baselines import BaselineRequest
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.order import Ask, Order
from gpu_runner.data.profile import Profile
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode, Verdict
from kbench_web.processes import installation
from kbench_web.processes.supervision import Program, ProgramProcess, descendants
from runs_app.core.runners.tokens import grant_login
from runs_app.models import RunnerToken
from tests import evidence
from tests import factories as make
from tests.conftest import RedisServer, free_port
from tests.scripted_answers import Asked
from tests.scripted_endpoint import read_record

ROOT = Path(__file__).parents[2]
SITE = ("ingest", "runs", "calls")
CALL_WORKERS = 3
_CALLS = ("rq:queue:calls", "rq:queue:calls:intermediate", "rq:wip:calls")
_ONE_SLOT = ("--people-slots", "0")  # each slot keeps processes ready that import PyTorch
SILENCE_S = 10  # the least that the settings allow
_SCRIPTED = "scripted"
_SAYS = re.compile(r"\b(" + "|".join(verdict.value for verdict in Verdict) + r")_(\d+)\b")


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = 240) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in time: {what}"
        time.sleep(0.05)


class Stack:
    """Redis and the site's programs, with the command lines of `make up`."""

    def __init__(self, folder: Path) -> None:
        """Nothing runs yet; data goes to `folder`, the database is the test's."""
        self.redis = RedisServer(folder)
        self.folder = folder
        self.lines: list[str] = []
        self.login = ""  # of the real runner on the runners' Redis
        self._processes: dict[str, ProgramProcess] = {}
        self._argv = [str(ROOT / "manage.py")]

    def start(self, *names: str) -> None:
        """Start programs by their names in `make up`; redis is one too."""
        if "redis" in names:
            self.redis.start()
        known = self._programs()
        for name in names:
            if name != "redis":
                self._processes[name] = ProgramProcess(known[name], self._say)

    def start_second(self, name: str) -> None:
        """Start one more process of a program, which `missing` and `kill` know as "name 2"."""
        self._processes[f"{name} 2"] = ProgramProcess(self._programs()[name], self._say)

    def kill(self, name: str) -> None:
        """SIGKILL a program and all that it has started."""
        if name == "redis":
            self.redis.kill()
        else:
            process = self._processes.pop(name)
            process.kill()
            process.close()

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of the programs that do not run."""
        return [
            name
            for name in names
            if name not in self._processes or self._processes[name].status is not None
        ]

    def sweep(self) -> None:
        """End what still works on calls, so that the next test finds everybody idle."""
        with Redis.from_url(self.redis.url) as redis:
            if "calls" in self._processes and redis.exists(*_CALLS):
                self.kill("calls")
            redis.delete(*_CALLS, "rq:queue:runs", "rq:queue:device-cpu")

    def pid(self, name: str) -> int:
        """Process id of a program."""
        return self._processes[name].pid

    def children(self, name: str) -> list[int]:
        """Process ids of what a program has started, not of what those have started."""
        family = descendants(self.pid(name))
        return [pid for pid in family if _parent(pid) == self.pid(name)]

    def stop(self) -> None:
        """End everything."""
        for name in list(self._processes):
            self.kill(name)
        self.redis.stop()

    def log(self) -> str:
        """The last lines that the programs printed."""
        return "\n".join(self.lines[-60:])

    def _say(self, name: str, line: str) -> None:
        self.lines.append(f"{name} | {line}")

    def _programs(self) -> dict[str, Program]:
        before, sys.argv = sys.argv, self._argv
        try:
            found = installation.programs("127.0.0.1", 0, call_workers=CALL_WORKERS)
            found += installation.runners(self.login)
        finally:
            sys.argv = before
        return {
            program.name: Program(
                name=program.name,
                command=[*program.command, *(_ONE_SLOT if program.name == "cpu" else ())],
                environment={**self.environment(), **program.environment},
            )
            for program in found
        }

    def environment(self) -> dict[str, str]:
        """Variables of the site's programs."""
        name = connection.settings_dict["NAME"]
        url = os.environ.get("DATABASE_URL", "")
        return {
            "REDIS_URL": self.redis.url,
            "KBENCH_RUNNERS_REDIS_URL": self.redis.url,
            "DATABASE_URL": f"{url.rsplit('/', 1)[0]}/{name}" if url else f"sqlite:///{name}",
            "KBENCH_DATA_DIR": str(self.folder),
            "KBENCH_CACHE": str(self.folder / "cache"),
            "KBENCH_SUBMIT_SHIPPED_KERNELS": "false",  # a test measures what it submits
            "KBENCH_CALL_SILENCE_S": str(SILENCE_S),
            "KBENCH_SILENCE_S": str(SILENCE_S),
            "DJANGO_SETTINGS_MODULE": "kbench_web.settings",
        }


class Endpoint:
    """The scripted endpoint as a process, which notes on disk what it is asked.

    `script` is the name of a function in `tests/integration/run_scripts.py`.
    """

    def __init__(self, folder: Path, script: str) -> None:
        """Choose a port; nothing listens yet."""
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self.record = folder / "record.jsonl"
        self._script = folder / "script.py"
        self._script.write_text(f"from tests.integration.run_scripts import {script} as script\n")
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Listen."""
        command = [sys.executable, "-m", "tests.scripted_endpoint", "--port", str(self.port)]
        command += ["--script", str(self._script), "--record", str(self.record)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self.base_url in self._process.stdout.readline()

    def stop(self) -> None:
        """Listen no more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    @property
    def asked(self) -> list[Asked]:
        """All requests so far, in order of arrival."""
        return read_record(self.record)


class ScriptedRunner:
    """Takes the jobs of the CPU as a runner does, and judges a source by what it says of itself.

    A source that holds `CORRECT_1500` is correct in 1500 ns, one with `COMPILE_ERROR_0` does not
    compile. `pause` makes it take nothing; `delay_s` is how long it measures.
    """

    def __init__(self, token: RunnerToken) -> None:
        """Serve from a thread until `stop`, with a login for that token."""
        self.delay_s = 0.0
        self.measured: list[EvaluationRequest] = []
        token.devices.add("cpu")
        self._source = RedisSource(grant_login(token))
        self._pause, self._rests, self._over = (threading.Event() for _ in range(3))
        self._patience = mock.patch.multiple(redis_source, _WAIT_S=0.2, _ANSWER_S=5.0)
        self._patience.start()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Take no job from now on."""
        self._pause.set()
        assert self._rests.wait(30)

    def resume(self) -> None:
        """Take jobs again."""
        self._rests.clear()
        self._pause.clear()

    def stop(self) -> None:
        """End."""
        self._over.set()
        self._thread.join(10)
        self._patience.stop()

    def _serve(self) -> None:
        state = make.make_runner_state(name=_SCRIPTED)
        self._send(
            Event(job_id="", attempt=0, seq=0, kind=EventKind.RUNNER, payload=codec.encode(state))
        )
        while not self._over.wait(0.02):
            if self._pause.is_set():
                self._rests.set()
                continue
            ask = Ask(
                runner=state.name,
                boot_id=state.boot_id,
                device=state.device,
                urgencies=tuple(Urgency),
                ticket=secrets.token_hex(16),
            )
            with contextlib.suppress(Away):  # it comes back
                if order := self._source.take(ask):
                    self._work_at(order)

    def _work_at(self, order: Order) -> None:
        tell = functools.partial(self._tell, order)
        tell(1, EventKind.STARTED, {"runner": _SCRIPTED, "at": time.time()})
        if order.kind == BaselineRequest.KIND:
            tell(2, EventKind.FINISHED, {"reason": "nothing is measured here"})
            return
        request = codec.decode(EvaluationRequest, order.request)
        self._over.wait(self.delay_s)
        self.measured.append(request)
        tell(2, EventKind.FINISHED, {"result": codec.encode(judge(request))})

    def _tell(self, order: Order, seq: int, kind: EventKind, payload: Any) -> None:
        job = {"job": order.kind, "job_id": order.job_id, "attempt": order.attempt}
        self._send(Event(**job, seq=seq, kind=kind, payload=payload))

    def _send(self, event: Event) -> None:
        while not self._over.is_set():
            try:
                self._source.send(event)
                return
            except Away:
                time.sleep(0.1)


def judge(request: EvaluationRequest) -> EvaluationResult:
    """The result that a source asks for."""
    found = _SAYS.search(request.solution.source)
    assert found, request.solution.source
    verdict = Verdict(found[1])
    if verdict is Verdict.CORRECT:
        right = evidence.result(request, float(found[2]))
        return replace(right, profile=_profile()) if request.mode is Mode.PROFILE else right
    return EvaluationResult(
        evaluation_id=request.evaluation_id,
        attempt=request.attempt,
        verdict=verdict,
        reason=f"scripted {verdict.value}",
        mode=request.mode,
        device=request.device,
        task=request.task.name,
        task_digest=request.task.digest(),
        solution_digest=request.solution.digest(),
    )


def _profile() -> Profile:
    metrics = {
        "compute_throughput_pct": 10.0,
        "dram_throughput_pct": 80.0,
        "memory_throughput_pct": 80.0,
    }
    return Profile(tool="portable", reason="no ncu", workload="n256", metrics=metrics)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_pid(pid: int) -> None:
    """SIGKILL one process."""
    os.kill(pid, signal.SIGKILL)
