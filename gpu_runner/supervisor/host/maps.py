"""What a process has mapped, by what the operating system says of it (proc(5))."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mapping:
    """Addresses [low, high) of a process, and where in which file they come from.

    rights: as in "r-xp". device: as in "08:01". inode: 0 where there is no file. path: as the
    process knows it; a name in brackets, or nothing, for memory without a file.
    """

    low: int
    high: int
    rights: str
    offset: int
    device: str
    inode: int
    path: str

    @property
    def is_code(self) -> bool:
        return "x" in self.rights


def mappings(pid: int) -> list[Mapping]:
    """All of a process, in order. Raises `OSError` if it has ended or cannot be seen."""
    return parsed(Path(f"/proc/{pid}/maps").read_bytes())


def parsed(text: bytes) -> list[Mapping]:
    """What such a file says. A path may hold all but a line feed, which the kernel writes as an
    escape: whatever else Python takes for the end of a line is part of it.
    """
    return [_mapping(line) for line in text.split(b"\n") if line]


def _mapping(line: bytes) -> Mapping:
    addresses, rights, offset, device, inode, *path = line.split(None, 5)
    low, _, high = addresses.partition(b"-")
    name = path[0].decode(errors="replace") if path else ""
    return Mapping(
        int(low, 16),
        int(high, 16),
        rights.decode(),
        int(offset, 16),
        device.decode(),
        int(inode),
        name,
    )
