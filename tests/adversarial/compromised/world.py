"""A real installation with people's jobs in it, and eyes to see what an attack has changed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import redis

from gpu_runner.data import mailbox
from gpu_runner.data.order import Order
from tests.adversarial.compromised.contract import HTTPS, NotStopped, require
from tests.adversarial.compromised.doors import Door, HttpsDoor, RedisDoor
from tests.installation import ROOT, Installation, InstallationError, few_tasks

OWN, FOREIGN, QUIET = "shared-gpu", "foreign-gpu", "quiet-gpu"
"""As in `stage`, which needs the site's models."""
_SETTINGS = {"KBENCH_SUBMIT_SHIPPED_KERNELS": "false", "KBENCH_SILENCE_S": "20"}
_PATIENCE_S = 60.0


class Site(Installation):
    """An installation whose commands are run as at its command line."""

    def manage(self, *words: str, **environment: str) -> str:
        """What one of the site's commands prints."""
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


class World:
    """The site, an honest runner, and the doors that an attacker holds."""

    def __init__(self, folder: Path) -> None:
        """Start the site and set the scene."""
        self.folder = folder
        secrets = {"ANTHROPIC_API_KEY": "sk-1", "NVIDIA_API_KEY": "nv-1"}
        tasks = few_tasks(folder.parent / "tasks", "vector_add")
        self.site = Site(folder, "--no-demo", settings=_SETTINGS | secrets | tasks)
        self.site.wait_until_ready()
        code = "from tests.adversarial.compromised import stage; stage.build()"
        printed = self.site.manage("shell", "-v", "0", "-c", code)
        self.facts: dict[str, Any] = json.loads(printed.partition("FACTS")[2])
        self.honest = self.https("honest", host="honest-host")

    def https(self, token: str, device: str = OWN, host: str = "host") -> HttpsDoor:
        """A token's way in over HTTPS."""
        return HttpsDoor(self.site.url, self.facts["tokens"][token], token, device, host)

    @cached_property
    def mallory(self) -> RedisDoor:
        """The login that was taken over."""
        return self.login("mallory")

    @cached_property
    def local(self) -> RedisDoor:
        """The login of `make up`'s own runner, as its environment shows it."""
        [variables, *_] = self.environments("gpu_runner work").values()
        return RedisDoor(variables["REDIS_URL"], "local", "cpu", host="poser")

    @cached_property
    def mallory_elsewhere(self) -> HttpsDoor:
        """The token that was taken over, on a host elsewhere."""
        return self.https("mallory", host="elsewhere")

    @cached_property
    def guest(self) -> HttpsDoor:
        """A token of a host that the admins don't control."""
        return self.https("guest")

    def victim(self) -> Order:
        """A job that the honest runner was handed, and works at."""
        return self.held(self.honest)

    def held(self, door: Door) -> Order:
        """A job that the door's runner was handed and has begun with."""
        order = door.take()
        door.say(door.about(order, "started", 1, {"runner": door.host, "at": time.time()}))
        self.until(lambda: self.job(order.job_id)["last_seq"], "the job does not begin")
        return order

    def login(self, token: str) -> RedisDoor:
        """A login of the runners' Redis, as `manage.py runner_login` prints it."""
        return RedisDoor(self.facts["logins"][token], token, OWN)

    def door(self, kind: str) -> Door:
        """The attacker's door of that kind."""
        return self.mallory_elsewhere if kind == HTTPS else self.mallory

    # What there is to see.

    @cached_property
    def keys(self) -> Any:
        """The runners' Redis, seen with the site's own login."""
        return redis.Redis.from_url(self.address("redis-runners"), socket_timeout=20)

    def address(self, store: str) -> str:
        """The site's own address of one of its Redis."""
        return (self.folder / store / "url").read_text().strip()

    def port(self, store: str) -> int:
        """Where one of its Redis listens."""
        return urlsplit(self.address(store)).port or 0

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What is in the site's database."""
        [path] = self.folder.glob("*.sqlite3")
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return database.execute(query, values).fetchall()

    def job(self, job_id: str, table: str = "evaluation") -> dict[str, Any]:
        """A job's row, by its columns' names."""
        columns = ("status", "attempt", "last_seq", "runner_id", "reason")
        query = f"SELECT {', '.join(columns)} FROM runs_app_{table} WHERE id = ?"
        [row] = self.rows(query, UUID(job_id).hex)
        return dict(zip(columns, row, strict=True))

    def verdict(self, job_id: str) -> str:
        """An evaluation's verdict; empty while there is none."""
        query = "SELECT verdict FROM runs_app_evaluation WHERE id = ?"
        return str(self.rows(query, UUID(job_id).hex)[0][0])

    def count(self, table: str, where: str = "1") -> int:
        """How many rows there are."""
        return int(self.rows(f"SELECT COUNT(*) FROM runs_app_{table} WHERE {where}")[0][0])

    def heard(self, door: Door) -> str:
        """Wait until the site has read all that a token said; why the last thing was set aside."""
        key = mailbox.events_key(self.facts["mailboxes"][door.token])
        self.until(lambda: not self.keys.xlen(key), f"the site does not read what {key} holds")
        [found] = self.keys.xrevrange("kbench:dead-letters", count=1) or [("", {})]
        return "set aside: " + found[1].get(b"reason", b"").decode()[:200]

    def until(
        self, condition: Callable[[], Any], what: str, timeout_s: float = _PATIENCE_S
    ) -> None:
        """Wait for it; `NotStopped` with `what` after too long."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            require(time.monotonic() < deadline, what)
            time.sleep(0.05)

    def check_alive(self, within_s: float = 5.0) -> None:
        """Raise `NotStopped` unless people see pages, and others' runners are heard."""
        began = time.monotonic()
        with urllib.request.urlopen(f"{self.site.url}/queue/", timeout=20) as answer:
            require(answer.status == 200, f"the queue's page answers {answer.status}")
        version = f"v{began}"[:20]
        self.honest.say(self.honest.heartbeat(version=version))
        self.until(
            lambda: self.count("runner", f"version = '{version}'"),
            "the site no longer hears an honest runner",
            within_s,
        )
        took = time.monotonic() - began
        require(took < 2 * within_s, f"a page and a heartbeat took {took:.1f} s")
        ended = re.findall(r"(?:web|ingest|boards) +\| ended with status .*", self.site.log())
        require(not ended, f"a program of the site ended: {ended}")

    def heal(self) -> None:
        """Undo what an attack that was not stopped has left, so that the next one can be tried."""
        for key in self.keys.scan_iter("kbench:runner-*:*"):
            self.keys.delete(key)
        for key in self.keys.scan_iter("rq:queue:*"):
            if self.keys.type(key) != b"list":
                self.keys.delete(key)
        self.site.lines[:] = [line for line in self.site.lines if "ended with" not in line]
        with contextlib.suppress(NotStopped, OSError):
            self.check_alive(15)

    def environments(self, words: str) -> dict[int, dict[str, str]]:
        """Environments of the site's processes with these words in their command lines, by pid."""
        found = {}
        for pid in self.site.family():
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                if words.encode() in command:
                    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
                    pairs = (each.partition("=") for each in text.split("\0") if each)
                    found[pid] = {name: value for name, _, value in pairs}
        return found

    def folder_size(self) -> int:
        """Bytes of the site's files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def close(self) -> None:
        """End the site."""
        self.site.stop()

    def processor_s(self, words: str) -> float:
        """Processor time so far of the site's processes with these words."""
        ticks = 0
        for pid in self.environments(words):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")
