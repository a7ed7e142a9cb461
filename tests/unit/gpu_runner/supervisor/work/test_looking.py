"""Looks at a living process: where its threads are, in which file, in which function."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.host.maps import mappings
from gpu_runner.supervisor.runner.freeze import Freezer
from gpu_runner.supervisor.work.attribution import Symbols, may_return_to, symbols_of
from gpu_runner.supervisor.work.mapped import CodeMap, CodeMaps
from gpu_runner.supervisor.work.onlooker import Onlooker

SPIN = r"""
extern "C" long own_loop(long n) {
  volatile long sum = 0;
  for (long i = 0; i < n; ++i) sum = sum + i;
  return sum;
}
"""
WORK = (
    "import ctypes, sys\nown = ctypes.CDLL(sys.argv[1])\nprint(flush=True)\n"
    "while True: own.own_loop(10**7)"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.cpp").write_text(SPIN)
    command = ["g++", "-O1", "-shared", "-fPIC", "own.cpp", "-o", "own.so"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "own.so"


@pytest.fixture
def working(library: Path) -> Iterator[int]:
    command = [sys.executable, "-c", WORK, str(library)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


class Silent(Channel):
    """A channel on which nothing comes for a moment."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def is_readable(self, wait_s: float) -> bool:
        time.sleep(min(wait_s, 0.01))
        return time.monotonic() > self._until


def code_of(pid: int) -> CodeMap:
    codes = CodeMaps()
    return codes.found[codes.now(pid)]


def test_a_thread_is_found_in_the_function_that_it_runs(working: int, library: Path) -> None:
    freezer, onlooker = Freezer(working, bare=True), Onlooker(call_s=0.01)
    freezer.freeze()
    freezer.thaw()
    onlooker(freezer, Silent(1.0))
    found = [
        (Path(mapping.path), Symbols(library).name(place.at - mapping.low + mapping.offset))
        for look in onlooker.looks
        for place in look
        if (mapping := onlooker.codes.found[place.code].find(place.at))
    ]
    assert found
    assert found.count((library, "own_loop")) > len(found) / 2
    returns = {
        Path(mapping.path).name.partition(".")[0]
        for look in onlooker.looks
        for word in look[0].stack[:64]
        if (mapping := onlooker.codes.found[look[0].code].find(word - 1))
        and mapping.path.startswith("/")
        and may_return_to(mapping.path, word - mapping.low + mapping.offset)
    }
    assert returns & {"libffi", "_ctypes"}
    assert "T" not in Path(f"/proc/{working}/stat").read_text().rpartition(")")[2].split()[0]


def test_all_files_together_are_read_up_to_a_limit(
    working: int, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_runner.supervisor.work.mapped.READ_LIMIT_BYTES", 100)
    kept: dict[tuple[str, int, str], bytes] = {}
    CodeMap(working, mappings(working), kept)
    assert sum(map(len, kept.values())) == 100
    CodeMap(working, [replace(m, inode=m.inode + 1) for m in mappings(working)], kept)
    assert sum(map(len, kept.values())) == 100


def test_a_mapped_file_is_read_whatever_its_name_is_now(working: int, library: Path) -> None:
    code = code_of(working)
    library.unlink()
    content = code.content(str(library))
    assert content[:4] == b"\x7fELF"
    assert b"own_loop" in content
    assert code.content("/nowhere") == b""
    assert code.of_files(re.compile(r"own\.so"))


def test_who_has_ended_has_no_code() -> None:
    assert code_of(1 << 30).find(os.getpid()) is None


def test_code_is_looked_up_as_it_was_then() -> None:
    protection = mmap.PROT_READ | mmap.PROT_EXEC
    codes, page = CodeMaps(), mmap.mmap(-1, mmap.PAGESIZE, prot=protection)
    at = int(numpy.frombuffer(page, numpy.uint8).ctypes.data)
    before = codes.now(os.getpid())
    assert codes.now(os.getpid()) == before
    page.close()
    after = codes.now(os.getpid())
    assert codes.found[before].find(at)
    assert codes.found[after].find(at) is None


def test_what_is_no_library_has_no_functions(tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF", b"\x7fELF\2\1" + b"\0" * 58, b"MZ" * 100):
        path = tmp_path / "file"
        path.write_bytes(content)
        symbols_of.cache_clear()
        symbols = symbols_of(path)
        assert symbols is None or symbols.name(64) == ""


def test_a_host_that_tells_nothing_is_asked_once(
    working: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> str:
        raise PermissionError(path)

    freezer, onlooker = Freezer(working, bare=True), Onlooker(call_s=0.01)
    freezer.freeze()
    freezer.thaw()
    monkeypatch.setattr(Path, "read_text", refused)
    onlooker(freezer, Silent(1.0))
    assert onlooker.has_seen_enough
    assert onlooker.looks == [[]]
