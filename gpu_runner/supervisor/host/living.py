"""Who may hold a GPU while another evaluation has it, and is no leftover.

Every oracle, and a process that stepped aside in the middle of a call.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.leftovers import Process, process_table

BYTES_EACH = 1 << 30
"""Of a GPU's memory that the context of an oracle may take while it waits for its turn."""


def note(config: SupervisorConfig, pid: int) -> None:
    """The process of that id begins to hold it, and those below it."""
    folder = _folder(config)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(pid)).touch()


def forget(config: SupervisorConfig, pid: int) -> None:
    """It no longer does."""
    (_folder(config) / str(pid)).unlink(missing_ok=True)


def holders(config: SupervisorConfig) -> list[int]:
    """Ids of those that live; who noted them may have died, and they with it."""
    folder = _folder(config)
    if not folder.is_dir():
        return []
    found = [int(path.name) for path in folder.iterdir() if path.name.isdecimal()]
    for pid in found:
        if not Path(f"/proc/{pid}").exists():
            forget(config, pid)
    return [pid for pid in found if Path(f"/proc/{pid}").exists()]


def without(pids: Collection[int], living: Collection[int]) -> list[int]:
    """Those of these processes that are not below one of `living`."""
    table = process_table()
    return [pid for pid in pids if not _is_below(pid, living, table)]


def _is_below(pid: int, above: Collection[int], table: dict[int, Process]) -> bool:
    seen: set[int] = set()
    while pid in table and pid not in seen:
        if pid in above:
            return True
        seen.add(pid)
        pid = table[pid].parent
    return False


def _folder(config: SupervisorConfig) -> Path:
    return config.cache_folder / "oracles" / f"{config.kind}-{config.index}"
