"""Which file of a process an address belongs to."""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path, PurePath

from gpu_runner.supervisor.host.maps import Mapping, mappings

READ_LIMIT_BYTES = 64 << 20  # chosen: as of a built library (`build.LIBRARY_LIMIT_BYTES`)


class CodeMap:
    """All code of a process, as it is mapped now."""

    def __init__(self, pid: int, found: Iterable[Mapping]) -> None:
        """`found` is what it has mapped."""
        self.pid = pid
        self._code = [mapping for mapping in found if mapping.is_code]
        self._lows = [mapping.low for mapping in self._code]

    @classmethod
    def of(cls, pid: int) -> CodeMap:
        """Read it; empty if the process has ended or cannot be seen."""
        found: list[Mapping] = []
        with contextlib.suppress(OSError):
            found = mappings(pid)
        return cls(pid, found)

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
        """A mapped file's bytes, whatever stands under its name now; empty where none are had."""
        mapping = next((m for m in self._code if m.path == path), None)
        if mapping is None:
            return b""
        ways = f"map_files/{mapping.low:x}-{mapping.high:x}", f"root{path}"
        for way in ways:
            with contextlib.suppress(OSError), Path(f"/proc/{self.pid}/{way}").open("rb") as file:
                return file.read(READ_LIMIT_BYTES)
        return b""
