"""How much memory another process takes, as this host's kernel accounts it."""

from __future__ import annotations

import re
from pathlib import Path

EXACT_BYTES = 256 << 10
"""Linux counts a thread's pages in steps. Source: mm.h, 64 pages before Linux 6.2."""

_RESET_PEAK = "5"  # Source: proc_pid_clear_refs(5)
_FIELDS = ("VmHWM", "VmRSS", "RssFile", "RssShmem")


class PeakMemory:
    """The most private memory that a process takes from `begin` to `taken`.

    It can't see memory that malloc kept from earlier calls and hands out again.
    """

    def __init__(self, process: Path) -> None:
        """`process` is its folder in /proc."""
        self._process = process
        self._before: dict[str, int] = {}

    def begin(self) -> None:
        """Forget the peak so far. Raises `OSError` where the host doesn't allow that."""
        (self._process / "clear_refs").write_text(_RESET_PEAK)
        self._before = self._read()

    def taken(self) -> int:
        """Bytes, without pages of files and shared memory, such as a call's tensors."""
        now = self._read()
        mapped = sum(max(now[name] - self._before[name], 0) for name in ("RssFile", "RssShmem"))
        taken = now["VmHWM"] - self._before["VmRSS"] - mapped
        return taken if taken > EXACT_BYTES else 0

    def _read(self) -> dict[str, int]:
        told = re.findall(r"^(\w+):\s*(\d+) kB$", (self._process / "status").read_text(), re.M)
        known = {name: int(kilobytes) << 10 for name, kilobytes in told}
        if missing := [name for name in _FIELDS if name not in known]:
            raise OSError(f"this host's /proc does not tell {missing[0]}")
        return known
