"""What a process has mapped is read off what the operating system says."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from gpu_runner.supervisor.host.maps import Mapping, mappings, parsed


@pytest.mark.parametrize(
    "name", ["plain", "with spaces  in it", "a\x0bb", "a\x85b", "a\u2028b\x1c"]
)
def test_a_name_is_what_it_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(bytes(mmap.PAGESIZE))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        found = [each for each in mappings(os.getpid()) if each.path == str(path)]
    assert [(each.inode, each.offset) for each in found] == [(path.stat().st_ino, 0)]


def test_a_line_says_all_of_a_range() -> None:
    text = b"7f00-7f80 r-xp 00001000 fe:00 26723                      /usr/lib/lib x.so (deleted)\n"
    named = Mapping(0x7F00, 0x7F80, "r-xp", 0x1000, "fe:00", 26723, "/usr/lib/lib x.so (deleted)")
    assert parsed(text) == [named]
    assert named.is_code
    bare = parsed(b"7f00-7f80 rw-p 00000000 00:00 0 \n7f80-7f90 ---p 00000000 00:00 0 [heap]\n")
    assert [(each.path, each.is_code) for each in bare] == [("", False), ("[heap]", False)]


def test_who_has_ended_cannot_be_seen() -> None:
    with pytest.raises(OSError, match="No such"):
        mappings(1 << 30)
