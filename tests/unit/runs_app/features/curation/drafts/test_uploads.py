"""Uploads become folders of texts, whatever system made them, and nothing unsafe is unpacked."""

from __future__ import annotations

import contextlib
import io
import json
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping

import pytest

from gpu_runner.data.codec import DataError, encode
from gpu_runner.data.formats import catalog_folder, find_task, read_folder
from runs_app.features.curation.drafts import uploads
from runs_app.features.curation.drafts.uploads import (
    ENTRIES_LIMIT,
    TASKS_LIMIT,
    UNPACKED_LIMIT_BYTES,
    Upload,
    Uploaded,
    read_upload,
)
from tests.unit.gpu_runner.data.test_formats_kbench import REFERENCE, SPECIFICATION
from tests.unit.gpu_runner.data.test_variants import VARIANT
from tests.unit.tasks_app.formats.test_importing import CONFIG, KERNELBENCH, ROBUST

NATIVE = {"task.toml": SPECIFICATION, "reference.py": REFERENCE, "kernels/naive.cpp": "// a kernel"}


def zipped(files: Mapping[str, str | bytes], name: str = "tasks.zip") -> Upload:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return Upload(name=name, content=content.getvalue())


def special(mode: int) -> Upload:
    """A zip with one entry that is no regular file."""
    content = io.BytesIO()
    entry = zipfile.ZipInfo("top/link")
    entry.create_system = 3  # Unix
    entry.external_attr = mode << 16
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    return Upload(name="t.zip", content=content.getvalue())


def singles(files: Mapping[str, str]) -> list[Upload]:
    return [Upload(name=name, content=text.encode()) for name, text in files.items()]


def under(folder: str, files: Mapping[str, str] = NATIVE) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def names(uploaded: Uploaded) -> list[str]:
    """Names of the tasks in an upload, which have no faults."""
    found = []
    for files in uploaded.folders:
        task, faults = read_folder(files)
        assert task is not None, faults
        found.append(task.name)
    return found


def refused(*uploads: Upload) -> DataError:
    with pytest.raises(DataError) as caught:
        read_upload(uploads)
    assert "/tmp" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("top", ["", "top/", "_top/", "a/b/"])
def test_a_zipped_folder_is_its_task(top: str) -> None:
    files = {top + name: text for name, text in NATIVE.items()}
    left_out = {
        f"{top}.git/config": b"\xff",
        f"{top}__pycache__/reference.pyc": b"\xff",
        f"__MACOSX/{top}._task.toml": b"\xff\0",
    }
    uploaded = read_upload([zipped(files | left_out)])
    assert uploaded.refused == []
    assert uploaded.skipped == list(left_out)
    (folder,) = uploaded.folders
    assert set(folder) == set(NATIVE)
    assert read_folder(folder) == read_folder(NATIVE)


OTHERS = {"func_forward.py": ROBUST, "config_forward.json": json.dumps(CONFIG)}
"""A task of another format."""


def test_tasks_of_every_format_in_one_zip() -> None:
    native = NATIVE | {"task_bf16.toml": VARIANT}
    encoded = json.dumps(encode(find_task("vector_add")))
    files = {
        **under("set/row_sum", native),
        **under("set/task_7", OTHERS),
        "set/level1/3_Copy.py": KERNELBENCH,
        "set/encoded.json": encoded,
        "set/report.json": json.dumps({"digest": "d", "mutants": []}),
        "set/README.md": "words",
        "set/tool.py": "import os",
    }
    uploaded = read_upload([zipped(files)])
    expected = ["vector_add", "level1-3_copy", "row_sum", "row_sum_bf16", "task_7"]
    assert sorted(names(uploaded)) == sorted(expected)
    left = "doesn't belong to any task, so it was left out"
    assert {error.field: error.reason for error in uploaded.refused} == {
        "set/tool.py": "must define the function get_inputs(); must define the function"
        " get_init_inputs(); must define the class Model with a method forward()",
        "set/README.md": left,
        "set/report.json": left,
    }
    more = {"forward.cu": "void forward();", "forward.cpp": "1", "forward_v2.cu": "2"}
    uploaded = read_upload([zipped(OTHERS | more, "My scale.zip")])
    assert names(uploaded) == ["my_scale"], "a zip names a folder without a name"
    assert sorted(error.field for error in uploaded.refused) == ["forward.cpp", "forward_v2.cu"]
    assert names(read_upload([zipped({"3_Copy.py": KERNELBENCH}, "level2.zip")])) == [
        "level2-3_copy"
    ]


def test_a_folder_too_large_to_be_a_task_is_refused() -> None:
    big = under("big") | {"big/data.txt": "x" * (2 * 1024 * 1024)}
    uploaded = read_upload([zipped(big | under("small"))])
    assert names(uploaded) == ["row_sum"]
    (error,) = uploaded.refused
    assert error.field == "big"
    assert "the limit for all files together" in error.reason
    many = {f"many/{number}.txt": "" for number in range(256)}
    assert "at most 256 files" in refused(zipped(many | under("many"))).reason


def test_single_files_go_to_their_places() -> None:
    listed = NATIVE["task.toml"].replace("kernels/naive.cpp", "own/naive.cpp")
    files = {
        "task.toml": listed,
        "reference.py": REFERENCE,
        "naive.cpp": "// a kernel",
        "notes.md": "words",
    }
    (folder,) = read_upload(singles(files)).folders
    assert set(folder) == {"task.toml", "reference.py", "own/naive.cpp", "notes.md"}
    broken = {"task.toml": listed + "=", "other.cu": "// a kernel"}
    (folder,) = read_upload(singles(broken)).folders
    assert set(folder) == {"task.toml", "kernels/other.cu"}
    out = listed.replace("own/naive.cpp", "../naive.cpp")
    assert refused(*singles(files | {"task.toml": out})).field == "../naive.cpp"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../x.py", "points outside"),
        ("a/../x.py", "points outside"),
        ("/etc/x.py", "points outside"),
        ("a//x.py", "points outside"),
        ("a/./x.py", "points outside"),
        ("..\\x.py", "points outside"),
        ("a\\..\\..\\x.py", "points outside"),
        ("\\\\host\\share\\x.py", "points outside"),
        ("C:\\x.py", "has a drive letter"),
        ("C:x.py", "has a drive letter"),
        ("..\\Thumbs.db", "points outside"),
        ("a:x.py/b", "has a drive letter"),
        ("x.py:stream", "contains a colon"),
        ("a\nb.py", "contains a colon"),
        ("x" * 201, "longer than 200 bytes"),
        ("a/inner.ZIP", "an archive inside"),
        ("a/inner.tar.gz", "an archive inside"),
        ("Top/task.toml", "appears twice"),
        ("top\\task.toml", "appears twice"),
        ("TOP\\Task.toml", "appears twice"),
        ("top/task.toml/x", "which is a file"),
        ("TOP/Task.toml/x", "which is a file"),
    ],
)
def test_a_path_that_is_refused(path: str, reason: str) -> None:
    error = refused(zipped(under("top") | {path: ""}))
    assert reason in error.reason
    slashed = path.replace("\\", "/")
    assert error.field in (slashed, ascii(slashed))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"caf\xe9", "is not UTF-8 text (byte 3)"),
        (b"a\0", "contains a NUL character"),
        ("x = 1".encode("utf-16"), "is UTF-16 text: save it as UTF-8"),
        ("x = 1".encode("utf-32"), "is UTF-32 text: save it as UTF-8"),
        ("x = 1".encode("utf-16-le"), "save the text as UTF-8"),
    ],
)
def test_what_is_no_text_is_named(content: bytes, reason: str) -> None:
    error = refused(zipped({**under("top"), "top/x.json": content}))
    assert error.field == "top/x.json"
    assert reason in error.reason
    assert refused(Upload(name="x.py", content=content)).field == "x.py"
    uploaded = read_upload([zipped({**under("top"), "top/x.dat": content})])  # nothing needs it
    assert (uploaded.folders, len(uploaded.refused)) == ([NATIVE], 1)
    assert str(uploaded.refused[0]).startswith("top/x.dat: ")
    assert reason in uploaded.refused[0].reason


def test_data_is_left_out_and_named_where_python_reads_it() -> None:
    data = {"top/w.npy": b"\x93NUMPY\0", "top/big.PT": bytes(UNPACKED_LIMIT_BYTES + 1)}
    reference = f"import numpy\nw = lambda: numpy.load('w.npy')\n{REFERENCE}"
    uploaded = read_upload([zipped(under("top") | data | {"top/reference.py": reference})])
    assert len(uploaded.folders) == 1
    assert uploaded.skipped == list(data)
    (told,) = uploaded.refused
    assert told.field == "top/w.npy"
    assert "but top/reference.py refers to it (line 2): generate the data" in told.reason
    single = Upload(name="big.pt", content=data["top/big.PT"])
    assert read_upload([*singles(NATIVE), single]).skipped == ["big.pt"]


def test_links_and_special_files_are_refused() -> None:
    for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK):
        error = refused(special(kind | 0o777))
        assert error.field == "top/link"
        assert "is a link or a special file" in error.reason


def test_a_bomb_is_not_unpacked_and_reading_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped({"bomb.txt": b"0" * (UNPACKED_LIMIT_BYTES + 1)})
    assert len(bomb.content) < 20_000
    assert "unpack to more than" in refused(bomb).reason
    small = bomb.content.replace(struct.pack("<L", UNPACKED_LIMIT_BYTES + 1), struct.pack("<L", 10))
    assert small != bomb.content
    refused(Upload(name="bomb.zip", content=small))
    many = zipped({f"{i}.txt": b"0" * (UNPACKED_LIMIT_BYTES // 4) for i in range(5)})
    assert "unpack to more than" in refused(many).reason
    files = {f"{i}.txt": "" for i in range(ENTRIES_LIMIT + 1)}
    assert "must number at most" in refused(zipped(files)).reason
    tasks = {f"{number}.py": KERNELBENCH for number in range(TASKS_LIMIT + 1)}
    assert "more than 64 tasks" in refused(zipped(tasks)).reason
    monkeypatch.setattr(uploads, "READING_LIMIT_S", -1.0)
    assert "upload fewer" in refused(zipped({"1.py": KERNELBENCH})).reason


def at_the_first_entry(content: bytes, place: int, byte: bytes) -> bytes:
    """The zip whose list says something else of its first entry."""
    at = content.index(b"PK\x01\x02") + place
    return content[:at] + byte + content[at + 1 :]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: at_the_first_entry(content, 8, b"\x01"), "is encrypted"),
        (lambda content: at_the_first_entry(content, 10, b"\x0e"), "compression method"),  # LZMA
        (lambda content: content[:-40], "cannot be unpacked"),
        (lambda content: content[:40] + b"\xff" * 20 + content[60:], "cannot be unpacked"),
        (lambda content: b"PK\x03\x04" + b"\0" * 60, "cannot be unpacked"),
        (lambda content: b"PK\x05\x06" + b"\0" * 18, "contain no task"),
    ],
)
def test_a_damaged_zip_is_refused(change: Callable[[bytes], bytes], reason: str) -> None:
    damaged = change(zipped(under("top")).content)
    assert reason in refused(Upload(name="t.zip", content=damaged)).reason


def test_every_byte_of_a_zip_may_be_wrong() -> None:
    content = zipped({"task.toml": "x", "kernels/naive.cpp": "//"}).content
    for at in range(len(content)):
        for change in (0x01, 0x80):
            garbled = content[:at] + bytes([content[at] ^ change]) + content[at + 1 :]
            with contextlib.suppress(DataError):
                assert read_upload([Upload(name="t.zip", content=garbled)]).folders


def test_uploads_without_a_task() -> None:
    assert "are missing" in refused().reason
    assert "contain no task" in refused(*singles({"README.md": "words"})).reason
    assert "contain no task" in refused(zipped({"top/README.md": "words"})).reason
    assert "contain no task" in refused(zipped({})).reason
    alone = refused(zipped({"t/reference.py": REFERENCE, "t/kernels/naive.cu": "// a kernel"}))
    assert alone.field == "t/reference.py"
    assert "has no task.toml" in alone.reason
    error = refused(*singles({"a.py": "import os", "b.py": "x"}))
    assert error.field == "a.py"
    assert error.reason.endswith("(and 1 more was refused)")
    kernel = refused(zipped({"fp32/vector_add.cu": "void"}))
    assert kernel.field == "fp32/vector_add.cu"
    assert "a zip and other files" in refused(zipped(NATIVE), *singles(NATIVE)).reason
    twice = [*singles({"x/a.py": KERNELBENCH}), *singles({"y/A.py": KERNELBENCH})]
    assert "appears twice" in refused(*twice).reason
    large = Upload(name="x.txt", content=b" " * (UNPACKED_LIMIT_BYTES + 1))
    assert refused(large).field == "files"


def test_a_document_with_odd_texts_is_refused() -> None:
    document = encode(find_task("vector_add"))
    document["title"] = "\ud800"
    assert "surrogate" in refused(*singles({"t.json": json.dumps(document)})).reason
    digits = singles({"t.json": '{"name": ' + "9" * 5000 + "}"})
    assert "is not valid JSON" in refused(*digits).reason
    kernels = SPECIFICATION.replace('path = "kernels/naive.cpp"', "path = [[1]]")
    (folder,) = read_upload(singles({"task.toml": kernels})).folders
    assert read_folder(folder)[1][0].field == "kernels[0].path"


def test_a_native_task_keeps_the_words_of_its_author() -> None:
    """Comments and sweeps are the author's; only what is adapted is written anew."""
    example = catalog_folder().with_name("example")
    packed = zipped({f"x/{p.relative_to(example)}": p.read_text() for p in example.rglob("*.*")})
    (folder,) = read_upload([packed]).folders
    assert folder["task.toml"] == (example / "task.toml").read_text()
    assert read_folder(folder)[1] == ()


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


def test_a_zip_may_say_that_names_begin_here() -> None:
    entries = {"./": "", **{f"./{name}": text for name, text in under("top").items()}}
    assert read_upload([zipped(entries)]).folders == [NATIVE]
    above = {f"./.{name}": text for name, text in entries.items()}
    assert "points outside" in refused(zipped(above)).reason


def test_windows_marks_are_dropped() -> None:
    listed = SPECIFICATION.replace("kernels/naive.cpp", "own/naive.cpp")
    files = {"task.toml": listed, "reference.py": REFERENCE, "naive.cpp": "// a kernel\n"}
    saved = {name: "\ufeff" + text.replace("\n", "\r\n") for name, text in files.items()}
    (folder,) = read_upload(singles(saved)).folders
    assert folder == {"own/naive.cpp" if n == "naive.cpp" else n: t for n, t in files.items()}
