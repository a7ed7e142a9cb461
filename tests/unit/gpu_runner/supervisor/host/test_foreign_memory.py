"""The memory of another process: tensors are read in it, and what it has mapped is known."""

from __future__ import annotations

import math
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpu_runner.supervisor.build.build import build_support
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.foreign_memory import (
    ForeignMemory,
    Span,
    Unreadable,
    mapped_at,
    probe,
    span_of,
)
from gpu_runner.supervisor.host.maps import Mapping, mappings, parsed

_OTHER = """
import ctypes, mmap, sys, time
numbers = (ctypes.c_int32 * 12)(*range(12))
held = mmap.mmap(int(sys.argv[1]), 8192)
page = ctypes.addressof(ctypes.c_char.from_buffer(held))
print(ctypes.addressof(numbers), page, flush=True)
time.sleep(60)
"""


@dataclass(frozen=True)
class Other:
    """A process with the numbers 0 to 11 as int32, and a file that it has mapped."""

    pid: int
    numbers: int
    page: int
    descriptor: int


@pytest.fixture(scope="module")
def other() -> Iterator[Other]:
    descriptor = os.memfd_create("other")
    os.ftruncate(descriptor, 8192)
    program = [sys.executable, "-c", _OTHER, str(descriptor)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, pass_fds=[descriptor]) as process:
        assert process.stdout is not None
        numbers, page = map(int, process.stdout.readline().split())
        yield Other(process.pid, numbers, page, descriptor)
        process.kill()


@pytest.fixture(scope="module")
def memory() -> ForeignMemory:
    return ForeignMemory(build_support(SupervisorConfig()))


def _read(
    memory: ForeignMemory, other: Other, shape: tuple[int, ...], strides: tuple[int, ...]
) -> list[int]:
    into = memoryview(bytearray(4 * math.prod(shape)))
    memory.read(other.pid, other.numbers, shape, strides, into)
    return into.cast("i").tolist()


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((12,), (1,), list(range(12))),
        ((3, 4), (4, 1), list(range(12))),
        ((4, 3), (1, 4), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]),
        ((2, 3), (0, 1), [0, 1, 2, 0, 1, 2]),
        ((1, 2), (99, 5), [0, 5]),
        ((), (), [0]),
        ((0, 7), (7, 1), []),
    ],
)
def test_elements_come_in_their_order(
    memory: ForeignMemory,
    other: Other,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    expected: list[int],
) -> None:
    assert _read(memory, other, shape, strides) == expected


def test_what_is_not_there_cannot_be_read(memory: ForeignMemory, other: Other) -> None:
    for stride in (1 << 40, 1 << 62, -1):
        with pytest.raises(Unreadable):
            _read(memory, other, (3,), (stride,))
    with pytest.raises(Unreadable):
        memory.read(other.pid, 0, (3,), (1,), memoryview(bytearray(12)))


def test_a_file_is_found_where_it_is_mapped_and_another_is_not(other: Other) -> None:
    assert mapped_at(other.pid, other.descriptor) == [(Span(other.page, other.page + 8192), 0)]
    another = os.memfd_create("other")
    assert mapped_at(other.pid, another) == []
    os.close(another)


def test_a_tensor_spans_what_it_reaches() -> None:
    assert span_of(100, (2, 3), (10, 1), 4) == Span(100, 100 + 4 * 13)
    assert span_of(100, (2, 0), (10, 1), 4) == Span(100, 100)
    assert Span(0, 4).overlaps(Span(3, 5))
    assert not Span(0, 4).overlaps(Span(4, 5))
    assert not Span(2, 2).overlaps(Span(2, 2))


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
def test_this_host_lets_us_read_what_runs_in_a_jail() -> None:
    assert probe() == ""


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
