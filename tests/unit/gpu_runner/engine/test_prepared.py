"""What was prepared of a Python module travels as an archive, with what programs answered."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_runner.engine import prepared
from gpu_runner.engine.prepared import Folder, TooLarge
from gpu_runner.engine.programs import NotPrepared, Programs
from gpu_runner.supervisor.build.module import ninja

HELLO = [sys.executable, "-c", "print('hello')"]
FAILING = [sys.executable, "-c", "raise SystemExit(3)"]


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Path]:
    """Where answers are kept; afterwards programs are started as ever."""
    run = subprocess.run
    yield tmp_path / "programs.json"
    setattr(subprocess, "run", run)  # noqa: B010


def test_answers_are_the_same_without_the_programs(programs: Path, tmp_path: Path) -> None:
    Programs(programs).remember()
    first = subprocess.check_output(HELLO)
    text = subprocess.run(HELLO, capture_output=True, text=True, check=True, cwd=tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.check_output(FAILING)
    Programs(programs).recall()
    again_hello = list(HELLO)
    assert subprocess.check_output(again_hello) == first == b"hello\n"
    again = subprocess.run(HELLO, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert (again.stdout, again.returncode) == (text.stdout, 0)
    with pytest.raises(subprocess.CalledProcessError, match="3"):
        subprocess.check_output(FAILING)


def test_what_nobody_started_before_is_refused(programs: Path, tmp_path: Path) -> None:
    Programs(programs).remember()
    subprocess.check_output(HELLO)
    Programs(programs).recall()
    with pytest.raises(NotPrepared, match=r"no program may be started .*: /bin/true"):
        subprocess.run(["/bin/true"], check=True)
    with pytest.raises(NotPrepared):  # in another folder it could have answered otherwise
        subprocess.check_output(HELLO, cwd=tmp_path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return Folder()


def test_an_archive_holds_files_and_their_times(folder: Folder, tmp_path: Path) -> None:
    folder.place("x = 1\n")
    made = folder.root / "torch_extensions" / "own" / "own.so"
    made.parent.mkdir(parents=True)
    made.write_bytes(b"\x7fELF")
    (made.parent / "lock").touch()
    (made.parent / "away").symlink_to("/etc/passwd")
    os.utime(made, (1_700_000_000.25, 1_700_000_000.25))
    with (tmp_path / "archive").open("w+b") as file:
        folder.pack(file.fileno())
        other = Folder.__new__(Folder)
        other.root = tmp_path / "other"
        other.root.mkdir()
        other.unpack(file.fileno())
    found = {path.relative_to(other.root).as_posix() for path in other.root.rglob("*.*")}
    assert found == {"source/kbench_kernel.py", "torch_extensions/own/own.so"}
    assert (other.root / "torch_extensions/own/own.so").stat().st_mtime == 1_700_000_000


NINJA = """\
rule compile
  command = g++ -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
build own.o: compile own.cpp
"""


@pytest.mark.skipif("CI" not in os.environ and not ninja(), reason="this host has no ninja")
def test_ninja_finds_its_work_done_in_another_process(folder: Folder, tmp_path: Path) -> None:
    made = folder.root / "torch_extensions" / "own"
    made.mkdir(parents=True)
    (made / "own.cpp").write_text("int own() { return 1; }\n")
    (made / "build.ninja").write_text(NINJA)
    subprocess.run([ninja()], cwd=made, check=True, capture_output=True)
    with (tmp_path / "archive").open("w+b") as file:
        folder.pack(file.fileno())
        shutil.rmtree(folder.root)
        folder.root.mkdir()
        folder.unpack(file.fileno())
    again = subprocess.run([ninja()], cwd=made, check=True, capture_output=True, text=True)
    assert "no work to do" in again.stdout


def test_too_much_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "ARCHIVE_LIMIT_BYTES", 4096)
    folder.place("x" * 4096)
    with pytest.raises(TooLarge, match="the limit is"):
        folder.pack(os.open(os.devnull, os.O_WRONLY))


@pytest.mark.parametrize("name", ["../out.py", "/tmp/out.py"])
def test_nothing_gets_outside_of_the_folder(folder: Folder, tmp_path: Path, name: str) -> None:
    with (tmp_path / "archive").open("w+b") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            entry = tarfile.TarInfo(name)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
        if name.startswith("/"):  # the leading slash goes
            folder.unpack(file.fileno())
        else:
            with pytest.raises(tarfile.FilterError):
                folder.unpack(file.fileno())
    assert not (tmp_path / "out.py").exists()
    assert not Path("/tmp/out.py").exists()
