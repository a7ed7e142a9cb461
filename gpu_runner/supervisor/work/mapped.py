"""Which file of a process an address belongs to."""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from collections.abc import Iterable, MutableMapping
from pathlib import Path, PurePath

from gpu_runner.supervisor.host.jail import SYSTEM_PATHS, python_paths
from gpu_runner.supervisor.host.maps import Mapping, parsed

INSTALLED = tuple(f"{path}/" for path in (*SYSTEM_PATHS, *python_paths()))
"""How paths begin of files that nobody but this host's administrator writes."""
READ_LIMIT_BYTES = 128 << 20  # chosen: a built library's most, and an archive's
"""Of all files of a submission together: a process may map as many as it likes, of any size."""

_CODE_LINE = re.compile(rb"^\S+ ..x.*$", re.MULTILINE)
_Kept = MutableMapping[tuple[str, int, str], bytes]


class CodeMap:
    """All code of a process, as it was mapped at some moment."""

    def __init__(self, pid: int, found: Iterable[Mapping], kept: _Kept | None = None) -> None:
        """`found` is what it has mapped.

        Files that are not installed are read now, unless `kept` has them: they may be removed.
        """
        self.pid = pid
        self._code = [mapping for mapping in found if mapping.is_code]
        self._lows = [mapping.low for mapping in self._code]
        self._kept: _Kept = {} if kept is None else kept
        for mapping in self._code:
            is_file = mapping.path.startswith("/") and not mapping.path.startswith(INSTALLED)
            if is_file and _key(mapping) not in self._kept:
                self._kept[_key(mapping)] = self._read(mapping)

    def find(self, address: int) -> Mapping | None:
        """The code at an address; None if there is none."""
        at = bisect_right(self._lows, address) - 1
        if at < 0 or address >= self._code[at].high:
            return None
        return self._code[at]

    def of_files(self, names: re.Pattern[str]) -> list[Mapping]:
        """The code of files whose names match."""
        return [m for m in self._code if names.fullmatch(PurePath(m.path).name)]

    def content(self, path: str) -> bytes:
        """The bytes of a mapped file that is not installed, whatever stands under its name now;
        empty where none are had.
        """
        mapping = next((m for m in self._code if m.path == path), None)
        return b"" if mapping is None else self._kept.get(_key(mapping), b"")

    def _read(self, mapping: Mapping) -> bytes:
        ways = f"map_files/{mapping.low:x}-{mapping.high:x}", f"root{mapping.path}"
        left = READ_LIMIT_BYTES - sum(map(len, self._kept.values()))
        for way in ways if left > 0 else ():
            with contextlib.suppress(OSError), Path(f"/proc/{self.pid}/{way}").open("rb") as file:
                return file.read(left)
        return b""


def _key(mapping: Mapping) -> tuple[str, int, str]:
    return mapping.device, mapping.inode, mapping.path


class CodeMaps:
    """What code processes have at each of several moments: a process may change that."""

    def __init__(self) -> None:
        self.found: dict[int, CodeMap] = {}
        """By the numbers that `now` gives."""
        self._last: dict[int, tuple[list[bytes], int]] = {}
        self._kept: _Kept = {}

    def now(self, pid: int) -> int:
        """Read what a process has; the same number if it is what it had last."""
        lines: list[bytes] = []
        with contextlib.suppress(OSError):  # it has ended, or cannot be seen
            lines = _CODE_LINE.findall(Path(f"/proc/{pid}/maps").read_bytes())
        known, number = self._last.get(pid, (None, 0))
        if lines != known:
            number = len(self.found)
            self.found[number] = CodeMap(pid, parsed(b"\n".join(lines)), self._kept)
            self._last[pid] = lines, number
        return number
