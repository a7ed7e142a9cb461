"""Tensors are read in the memory of another process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

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
    count = 1
    for size in shape:
        count *= size
    into = memoryview(bytearray(4 * count))
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


@pytest.mark.parametrize("strides", [(1 << 40,), (1 << 62,), (-1,)])
def test_what_is_not_there_cannot_be_read(
    memory: ForeignMemory, other: Other, strides: tuple[int, ...]
) -> None:
    with pytest.raises(Unreadable):
        _read(memory, other, (3,), strides)


def test_nothing_lies_at_a_null_pointer(memory: ForeignMemory, other: Other) -> None:
    with pytest.raises(Unreadable):
        memory.read(other.pid, 0, (3,), (1,), memoryview(bytearray(12)))


def test_a_file_is_found_where_it_is_mapped(other: Other) -> None:
    assert mapped_at(other.pid, other.descriptor) == [(Span(other.page, other.page + 8192), 0)]


def test_another_file_is_not(other: Other) -> None:
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
