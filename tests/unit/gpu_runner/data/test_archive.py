"""What is carried of an archive that a submission's process wrote, and its digests."""

from __future__ import annotations

import io
import tarfile

import pytest

from gpu_runner.data import archive
from gpu_runner.data.archive import BadArchive


@pytest.mark.parametrize(
    "name",
    [
        "source/kbench_kernel.py",
        "kbench_kernel.py",
        "inductor/ab/cab.py",
        "numba/__pycache__/own.nbc",
        "triton/own.pyc",
        "cute/own.pth",
        "extensions/key/own.so",
        "triton/../source/own",
        "/triton/own",
        "triton//own",
        "cuda/lock",
    ],
)
def test_sources_and_what_is_ours_are_not_taken(name: str) -> None:
    kept = {"numba/own.nbc": b"code", "programs.json": b"{}"}
    assert archive.taken(archive.written({**kept, name: b"x"})) == kept


def test_an_archive_is_the_same_for_the_same_files() -> None:
    files = {"cuda/a": b"1", "triton/b.so": b"2"}
    content = archive.written(files)
    assert content == archive.written(dict(reversed(files.items())))
    assert archive.read(content) == files
    assert [part.part for part in archive.parts(files)] == ["cuda", "triton"]
    changed = archive.parts({**files, "triton/b.so": b"3"})
    assert [p.part for p in archive.parts(files) if p not in changed] == ["triton"]


def linked() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        entry = tarfile.TarInfo("triton/own")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(entry)
    return buffer.getvalue()


@pytest.mark.parametrize("content", [b"", b"no archive at all" * 100, linked()])
def test_what_is_no_archive_of_files_is_refused(content: bytes) -> None:
    with pytest.raises(BadArchive):
        archive.taken(content)
