"""What a local user of the host, or a jailed kernel, finds there; and what a runner holds."""

from __future__ import annotations

import stat
from pathlib import Path
from urllib.parse import urlsplit

from tests.adversarial.compromised.contract import HOST, attack, require
from tests.adversarial.compromised.doors import Door
from tests.adversarial.compromised.world import World

_OF_THE_SITE = (
    *("DATABASE_URL", "KBENCH_SECRET_KEY", "KBENCH_RUNNERS_REDIS_URL", "DJANGO"),
    *("API_KEY", "KBENCH_EMAIL", "KBENCH_GITHUB", "KBENCH_OIDC", "AWS_", "TOKEN"),
)


@attack(HOST, by="a runner gets the variables that it needs, and no others")
def read_a_runners_environment(w: World, door: Door) -> str:
    """Read the variables of a runner's processes: database, secret key, keys of models."""
    found = w.environments("gpu_runner work")
    require(found, "no runner is there")
    own = w.address("redis"), w.address("redis-runners")
    for variables in found.values():
        for name, value in variables.items():
            require(not any(each in name for each in _OF_THE_SITE), f"it holds {name}")
            require(value not in own, f"{name} is the site's own login")
    return f"{len(found)} processes, {len(variables)} variables"


@attack(HOST, by="jails get variables of their own")
def read_the_environment_of_jailed_processes(w: World, door: Door) -> str:
    """Read the variables of what runs tasks' and kernels' code: the runner's login."""
    found = w.environments("oracle") | w.environments("bwrap")
    for variables in found.values():
        secrets = [name for name in variables if name in ("REDIS_URL", "KBENCH_RUNNER_TOKEN")]
        require(not secrets, f"a jailed process holds {secrets}")
    return f"{len(found)} processes"


@attack(HOST, by="command lines hold no password")
def read_command_lines(w: World, door: Door) -> str:
    """Look with `ps` for passwords of both Redis and of runners."""
    secrets = {urlsplit(w.address(each)).password for each in ("redis", "redis-runners")}
    secrets |= {urlsplit(w.local.url).password}
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        count += 1
        require(not any(each and each in line for each in secrets), f"{path} holds one")
    return f"{count} command lines"


@attack(HOST, by="files with secrets are for their owner alone")
def read_files(w: World, door: Door) -> str:
    """Read passwords, the secret key, the database or logins as another user of the host."""
    kept = ("url", "users.acl", "secret", "sqlite3", "appendonly", ".aof", "redis.log")
    readable = [
        path
        for path in w.folder.rglob("*")
        if path.is_file() and any(word in path.name for word in kept) and _is_open(path, w.folder)
    ]
    require(not readable, f"others can read {', '.join(map(str, readable[:5]))}")
    return "0600, or in a folder that is 0700"


def _is_open(path: Path, root: Path) -> bool:
    """Whether others can read the file: itself, and every folder down to it."""
    if not path.stat().st_mode & stat.S_IROTH:
        return False
    folders = [each for each in path.parents if each == root or root in each.parents]
    return all(each.stat().st_mode & stat.S_IXOTH for each in folders)
