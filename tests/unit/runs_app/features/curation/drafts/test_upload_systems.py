"""Uploads as Windows and macOS make them: clutter is passed over, and names mean what they do."""

from __future__ import annotations

import stat

import pytest

from runs_app.features.curation.drafts.uploads import UNPACKED_LIMIT_BYTES, Upload, read_upload
from tests.unit.gpu_runner.data.test_formats_kbench import REFERENCE, SPECIFICATION
from tests.unit.runs_app.features.curation.drafts.test_uploads import (
    NATIVE,
    names,
    refused,
    singles,
    special,
    under,
    zipped,
)

CLUTTER = {
    "Thumbs.db": b"\xd0\xcf\x11\xe0\0",
    "DESKTOP.INI": b"\xff\xfe[\0",
    ".DS_Store": b"\0\0\0\x01Bud1",
    "Icon\r": b"",
    "plot.png": b"\x89PNG\r\n\x1a\n\0",
    "kernels/roofline.JPG": b"\xff\xd8\xff",
    "kernels/._naive.cpp": b"\0\x05\x16\x07",
    "__pycache__/reference.cpython-312.pyc": b"\xcb\r\r\n",
    "kernels/naive.so": b"\x7fELF\x02\0",
    "a.out": b"\x7fELF\x02\0",
    "Results.XLSX": b"PK\x03\x04\0",
    "~$notes.docx": b"\0\x01",
    "reference.py:Zone.Identifier": b"[ZoneTransfer]\r\n\0",
}
"""What Windows, macOS and people leave between a task's files."""


@pytest.mark.parametrize("slash", ["/", "\\"])
def test_a_zip_as_windows_and_macos_make_it(slash: str) -> None:
    files = {name: text.replace("\n", "\r\n") for name, text in NATIVE.items()}
    entries: dict[str, str | bytes] = {"top/": "", "top/kernels/": ""}
    for name, content in {**files, **CLUTTER}.items():
        entries[f"top/{name}"] = content
        entries[f"__MACOSX/top/._{name.rpartition('/')[2]}"] = b"\0\x05\x16\x07"
    uploaded = read_upload([zipped({n.replace("/", slash): text for n, text in entries.items()})])
    assert uploaded.folders == [NATIVE]
    assert uploaded.refused == []
    skipped = [f"top/{name}" if name.isprintable() else "'top/Icon\\r'" for name in CLUTTER]
    assert [name for name in uploaded.skipped if "__MACOSX" not in name] == skipped


def test_clutter_is_neither_unpacked_nor_refused() -> None:
    large = {"top/film.png": bytes(UNPACKED_LIMIT_BYTES + 1)}
    link = special(stat.S_IFLNK | 0o777)
    hidden = Upload(name="t.zip", content=link.content.replace(b"top/link", b"top/.lnk"))
    assert hidden != link
    assert "contain no task" in refused(hidden).reason
    assert read_upload([zipped(under("top") | large)]).skipped == ["top/film.png"]
    chosen = [*singles(NATIVE | {"a.png": ""}), Upload(name="Thumbs.db", content=b"\xd0\xcf\0")]
    uploaded = read_upload(chosen)
    assert [set(folder) for folder in uploaded.folders] == [set(NATIVE)]
    assert uploaded.skipped == ["a.png", "Thumbs.db"]


def test_names_from_macos_are_those_that_a_specification_lists() -> None:
    listed = SPECIFICATION.replace("kernels/naive.cpp", "kernels/naïve.cpp")
    apart = "kernels/nai\u0308ve.cpp"
    files = NATIVE | {"task.toml": listed, apart: NATIVE["kernels/naive.cpp"]}
    assert names(read_upload([zipped(files)])) == ["row_sum"]
    assert "appears twice" in refused(zipped({apart: "", "kernels/naïve.cpp": ""})).reason


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("größe.txt".encode(), "größe.txt"),  # as macOS
        ("größe.txt".encode("cp437"), "größe.txt"),  # as Windows, years ago
        ("größe.txt".encode("latin-1"), "gr÷▀e.txt"),  # as nobody can know
    ],
)
def test_names_in_zips_that_say_nothing_of_their_encoding(raw: bytes, name: str) -> None:
    place = "x" * len(raw)
    upload = zipped(NATIVE | {place: "a note"})
    assert upload.content.count(place.encode()) == 2
    content = upload.content.replace(place.encode(), raw)
    (folder,) = read_upload([Upload(name="t.zip", content=content)]).folders
    assert folder[name] == "a note"


def test_a_zip_may_say_that_names_begin_here() -> None:
    entries = {"./": "", **{f"./{name}": text for name, text in under("top").items()}}
    assert read_upload([zipped(entries)]).folders == [NATIVE]
    above = {f"./.{name}": text for name, text in entries.items()}
    assert "leads out" in refused(zipped(above)).reason


def test_a_specification_of_another_name_is_told_its_own() -> None:
    for wrong in ("Task.toml", "task.toml.txt", "TASK.TXT"):
        files = {wrong if name == "task.toml" else name: text for name, text in NATIVE.items()}
        error = refused(zipped(under("top", files)))
        assert (error.field, error.reason) == (f"top/{wrong}", "must be called task.toml")


def test_windows_marks_are_dropped() -> None:
    listed = SPECIFICATION.replace("kernels/naive.cpp", "own/naive.cpp")
    files = {"task.toml": listed, "reference.py": REFERENCE, "naive.cpp": "// a kernel\n"}
    saved = {name: "\ufeff" + text.replace("\n", "\r\n") for name, text in files.items()}
    (folder,) = read_upload(singles(saved)).folders
    assert folder == {"own/naive.cpp" if n == "naive.cpp" else n: t for n, t in files.items()}
