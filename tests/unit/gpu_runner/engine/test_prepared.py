"""What was prepared of a Python module travels as an archive, with what programs answered."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_runner.data import archive
from gpu_runner.data.normal_form import NormalForm
from gpu_runner.engine.runner import prepared
from gpu_runner.engine.runner.prepared import Folder, TooLarge
from gpu_runner.engine.runner.programs import NotPrepared, Programs

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
    command = [sys.executable, "-c", "import os; print(os.environ['OWN'])"]
    subprocess.check_output(command, env={**os.environ, "OWN": "1"})
    Programs(programs).recall()
    assert subprocess.check_output(command, env={**os.environ, "OWN": "1"}) == b"1\n"
    with pytest.raises(NotPrepared):
        subprocess.check_output(command, env={**os.environ, "OWN": "2"})
    with pytest.raises(NotPrepared):  # in another folder it could have answered otherwise
        subprocess.check_output(command, env={**os.environ, "OWN": "1"}, cwd=tmp_path)
    with pytest.raises(NotPrepared, match=r"no program may be started .*: /bin/true"):
        subprocess.run(["/bin/true"], check=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return Folder()


def test_an_archive_holds_what_compilers_keep_and_nothing_else(
    folder: Folder, tmp_path: Path
) -> None:
    folder.place(NormalForm("x = 1\n"))
    for name in ("triton/ab/own.cubin", "programs.json", "texts/own/main.cpp", "extensions/k/o.so"):
        (folder.root / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / name).write_bytes(b"made")
    (folder.root / "triton/away").symlink_to("/etc/passwd")
    with (tmp_path / "archive").open("w+b") as file:
        folder.pack(file.fileno())
        file.seek(0)
        found = archive.taken(file.read())
    assert found == {"triton/ab/own.cubin": b"made", "programs.json": b"made"}


def test_too_much_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "ARCHIVE_LIMIT_BYTES", 4096)
    (folder.root / "cuda").mkdir()
    (folder.root / "cuda/large").write_text("x" * 4096)
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
