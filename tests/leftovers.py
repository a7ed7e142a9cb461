"""What evaluations could leave behind on a host, noted before and looked for after them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.leftovers import (
    OUR_PREFIX,
    descends,
    is_jail_uid,
    orphans,
    process_table,
    sentence,
)
from gpu_runner.supervisor.host.nvml import NvmlError

PATIENCE_S = 3.0
"""A process that was killed, and a GPU context with it, takes a moment to be gone."""

_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run")
_GPU_SLACK_BYTES = 64 << 20  # chosen: a driver's own memory varies by less


@dataclass(frozen=True)
class Snapshot:
    """Everything of this host that belongs to evaluations now: each thing as a sentence."""

    things: frozenset[str]
    gpu_bytes: tuple[int, ...] = ()  # in use, one figure a GPU


def snapshot() -> Snapshot:
    """Note what is there now. Things of other processes that measure beside this one are not."""
    things = [
        *_processes(),
        *_files(),
        *_mounts(),
        *_system_v(),
        *_our_own(),
        *_control_groups(),
    ]
    return Snapshot(frozenset(things), _gpu_bytes())


def left_behind(before: Snapshot, patience_s: float = PATIENCE_S) -> list[str]:
    """What is there now and was not `before`, sorted; waits so long for it to go away."""
    deadline = time.monotonic() + patience_s
    while (found := _new(before)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _new(before: Snapshot) -> list[str]:
    now = snapshot()
    found = sorted(now.things - before.things)
    for index, (was, used) in enumerate(zip(before.gpu_bytes, now.gpu_bytes, strict=False)):
        if used > was + _GPU_SLACK_BYTES:
            found.append(f"GPU {index}: {(used - was) >> 20} MiB more in use")
    return found


def _processes() -> list[str]:
    """Our descendants, and orphans."""
    table = process_table()
    ours = (process for process in table.values() if descends(process, table))
    return [*map(sentence, ours), *orphans()]


def _files() -> list[str]:
    """Files that a jail's user owns, or that have our name, where anybody may write."""
    found = []
    for folder in _FOLDERS:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    uid = entry.stat(follow_symlinks=False).st_uid
                    if is_jail_uid(uid) or entry.name.startswith(OUR_PREFIX):
                        found.append(f"file {entry.path} of user {uid}")
    return found


def _mounts() -> list[str]:
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        return [f"mount {line.split()[0]} on {line.split()[4]}" for line in lines]
    return []


def _system_v() -> list[str]:
    """System V objects that a jail's user made (as root), or this user."""
    found = []
    for kind in ("shm", "msg", "sem"):
        with contextlib.suppress(OSError):
            header, *rows = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()
            names = header.split()
            for row in rows:
                fields = dict(zip(names, row.split(), strict=False))
                uid = int(fields["cuid"])
                if is_jail_uid(uid) or (os.geteuid() != 0 and uid == os.geteuid()):
                    found.append(f"System V {kind} {fields[kind + 'id']} of user {uid}")
    return found


def _our_own() -> list[str]:
    """Anonymous files that this process still holds, and threads that still watch a jail."""
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(path)
            if target.startswith(f"/memfd:{OUR_PREFIX}"):
                found.append(f"descriptor {path.name} of {target}")
    threads = (thread.name for thread in threading.enumerate())
    return found + [f"thread {name}" for name in threads if name.startswith(OUR_PREFIX)]


def _control_groups() -> list[str]:
    """Groups named kbench-PID-NUMBER that this process made, or one that is gone."""
    root = Path("/sys/fs/cgroup")
    found = []
    for depth in ("", "*/", "*/*/", "*/*/*/"):
        with contextlib.suppress(OSError):
            for path in root.glob(f"{depth}{OUR_PREFIX}*-*"):
                maker = path.name.split("-")[1]
                if maker == str(os.getpid()) or not Path("/proc", maker).exists():
                    found.append(f"control group {path}")
    return found


def _gpu_bytes() -> tuple[int, ...]:
    with contextlib.suppress(NvmlError):
        return tuple(nvml.memory_used(index) for index in range(nvml.device_count()))
    return ()
