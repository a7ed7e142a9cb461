"""Run a whole installation on this machine: database, Redis, site, workers and runners."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbench_web import env
from kbench_web.processes import installation, redis_server
from kbench_web.processes.supervision import Console, Supervisor
from runs_app.core import features

_FIRST_REDIS_PORT = 6379
_ANSWER_TIMEOUT_S = 90.0
_PATIENCE_S = installation.RUNNER_DRAIN_S + 10.0


@dataclass(frozen=True)
class _Store:
    """A Redis of the installation, started here unless the variable names another."""

    name: str
    variable: str
    folder: str
    what: str
    limits: Sequence[str] = ()


_STORES = (
    _Store("redis", "REDIS_URL", "redis", "the site's own Redis"),
    _Store(
        *("mailbox", "KBENCH_RUNNERS_REDIS_URL", "redis-runners", "the runners' Redis"),
        redis_server.OF_RUNNERS,
    ),
)


class Command(BaseCommand):
    """`manage.py up [--host HOST] [--port PORT] [--no-demo] [--no-runners]`."""

    help = "Run everything on this machine until Ctrl-C; the address is printed last."
    requires_system_checks = ()
    _console: Console
    _supervisor: Supervisor
    _scheme = "http"
    _address = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument(
            "--port", type=int, default=8000, help="port to listen on, or the next free one"
        )
        parser.add_argument(
            "--certificate",
            type=Path,
            metavar="FILE",
            help="certificate for serving HTTPS; requires --key",
        )
        parser.add_argument(
            "--key", type=Path, metavar="FILE", help="private key of the certificate"
        )
        parser.add_argument(
            "--no-demo",
            action="store_true",
            help="don't submit the shipped kernels or show their stored results",
        )
        parser.add_argument(
            "--no-runners",
            action="store_true",
            help="don't start runners or the demo here, because you use other hosts or a spool",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        host = options["host"]
        folder = Path(settings.DATA_DIR)
        with _only_one(folder), _signals() as stops:
            port = self._port(host, options["port"])
            measures = not options["no_runners"]
            tls = _tls(options)
            programs = installation.programs(
                host, port, call_workers=settings.CALL_WORKERS, tls=tls
            )
            self._choose_address(host, port, tls)
            os.environ.setdefault("KBENCH_CACHE", str(folder / "cache"))
            devices = ["cpu", *(f"cuda-{index}" for index in installation.cuda_devices())]
            names = ["up", *(each.name for each in _STORES), *(p.name for p in programs), *devices]
            self._console = Console(sys.stdout, names)
            self._supervisor = Supervisor(self._console.line)
            try:
                for store in _STORES:
                    self._start_redis(store, folder)
                self._prepare(demo=not options["no_demo"], measures=measures)
                if measures:
                    programs += installation.runners(self._login())
                for program in programs:
                    self._supervisor.add(program)
                self._welcome(host, port, stops, demo=measures and not options["no_demo"])
                while not stops:
                    self._supervisor.tick()
            finally:
                self._say("stopping; Ctrl-C again to stop immediately")
                self._supervisor.stop(_PATIENCE_S, lambda: len(stops) > 1)
            self._say("stopped")

    def _say(self, text: str) -> None:
        self._console.line("up", text)

    def _port(self, host: str, wanted: int) -> int:
        port = installation.next_free(host, wanted)
        if port != wanted:
            self.stdout.write(f"port {wanted} is in use by another program: using {port}")
        return port

    def _choose_address(self, host: str, port: int, tls: installation.Tls | None) -> None:
        """Say where the site is, for its links too unless a proxy in front has another address."""
        self._scheme = "https" if tls else "http"
        self._address = installation.address(self._scheme, host, port, settings.ALLOWED_HOSTS)
        behind_proxy = settings.PRODUCTION and tls is None
        if not behind_proxy and not env.text("KBENCH_SITE_URL", ""):
            os.environ["KBENCH_SITE_URL"] = self._address

    def _start_redis(self, store: _Store, folder: Path) -> None:
        url = os.environ.get(store.variable, "")
        if url:
            if fault := redis_server.answers(url):
                raise CommandError(
                    f"{store.variable} is set, but nothing answers there: {fault}."
                    " Start that server, or unset the variable to have one started here."
                )
            self._say(f"using the Redis at {store.variable}")
            return
        port = installation.next_free("127.0.0.1", _FIRST_REDIS_PORT)
        data = folder / store.folder
        url = os.environ[store.variable] = redis_server.prepare(data, port)
        self._supervisor.add(redis_server.program(store.name, data, port, store.limits))
        self._supervisor.tick()
        if fault := redis_server.wait(url):
            log = data / redis_server.LOG
            raise CommandError(f"the Redis started here isn't responding: {fault}; see {log}")
        self._say(f"{store.what}: port {port} ({redis_server.binary()})")

    def _login(self) -> str:
        """The address with which this machine's runners reach their Redis."""
        command = installation.manage("runner_login", "--local")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CommandError(
                f"couldn't create a login for the runners here: {done.stderr.strip()}"
            )
        return done.stdout.strip()

    def _prepare(self, *, demo: bool, measures: bool) -> None:
        for sentence in installation.missing_programs() if measures else ():
            self._say(f"MISSING: {sentence}")
        if not self._run("migrate", "--no-input", "--verbosity", "0"):
            raise CommandError("the database could not be migrated; see above")
        self._collect_files()
        self._run("load_tasks", "--brief")
        if demo:
            for module in features.modules("start"):
                for command in module.DEMO:
                    self._run(*command)

    def _collect_files(self) -> None:
        """Compress styles and scripts for the site's processes, unless the environment says no."""
        if settings.DEBUG or not env.flag("KBENCH_COLLECTED_FILES", default=True):
            return
        os.environ["KBENCH_COLLECTED_FILES"] = "1"
        if not self._run("collectstatic", "--no-input", "--verbosity", "0"):
            raise CommandError("styles and scripts could not be collected; see above")

    def _run(self, *arguments: str) -> bool:
        """Run one of the site's commands to its end; whether it succeeded."""
        done = subprocess.run(
            installation.manage(*arguments), capture_output=True, text=True, check=False
        )
        for line in done.stdout.splitlines() + done.stderr.splitlines():
            self._say(f"{arguments[0]}: {line}")
        return done.returncode == 0

    def _welcome(self, host: str, port: int, stops: list[int], *, demo: bool) -> None:
        """Wait for the site to answer, submit the demo, and print the address."""
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        while (status := self._status_of_home(host, port)) is None:
            if stops:
                return
            if time.monotonic() > deadline:
                raise CommandError(f"the site isn't responding after {_ANSWER_TIMEOUT_S:g} s")
            self._supervisor.tick()
        if status >= http.client.INTERNAL_SERVER_ERROR:
            self._say(f"the home page fails with status {status}: see the log of `web`")
        if demo:
            self._run("demo")
            # In the background, behind whatever people submit.
            self._run("submit_shipped_kernels", "--tuned")
        self._say(f"kbench is ready at {self._address}/  (Ctrl-C stops it)")

    def _status_of_home(self, host: str, port: int) -> int | None:
        """HTTP status of the home page, or None while nobody answers."""
        address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
        connection = http.client.HTTPConnection(address, port, timeout=10)
        if self._scheme == "https":
            context = ssl._create_unverified_context()  # noqa: S323 (our own process)
            connection = http.client.HTTPSConnection(address, port, timeout=10, context=context)
        try:
            connection.request("GET", "/", headers={"Host": urlsplit(self._address).netloc})
            return connection.getresponse().status
        except OSError:
            return None
        finally:
            connection.close()


def _tls(options: dict[str, Any]) -> installation.Tls | None:
    """The files to serve HTTPS with, if they are named; raises `CommandError`."""
    files = {name: options[name] for name in ("certificate", "key")}
    if not any(files.values()):
        return None
    for name, path in files.items():
        if path is None or not path.is_file():
            raise CommandError(f"--{name} must name a file in PEM; --certificate needs --key")
    return installation.Tls(**{name: path.resolve() for name, path in files.items()})


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Hold the installation's lock: two at once would share one Redis folder."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "up.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(
                f"kbench is already running with the data in {folder};"
                " stop that one, or set KBENCH_DATA_DIR to another folder"
            ) from None
        yield


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGINT, SIGTERM and SIGHUP in a list instead of dying of them."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, lambda got, _: received.append(got)) for n in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
