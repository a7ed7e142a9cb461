"""Read what somebody uploads as tasks, each a folder of texts; none of it is trusted or run."""

from __future__ import annotations

import io
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from gpu_runner.data.characters import bad_character
from gpu_runner.data.codec import DataError, DataErrors
from gpu_runner.data.formats.clutter import is_clutter
from gpu_runner.data.formats.flashinfer_trace import places
from gpu_runner.data.formats.kbench import (
    KERNELS,
    REFERENCE,
    SPECIFICATION,
    is_specification,
    parse_specification,
)
from gpu_runner.data.formats.text import FILES_LIMIT, TASK_LIMIT_BYTES, decoded
from gpu_runner.data.task import TaskFormat
from tasks_app.formats.importing import Bounds, Row, import_path
from tasks_app.formats.task_writing import write_folder

_UNPACKED_MIB = 8
UNPACKED_LIMIT_BYTES = _UNPACKED_MIB << 20
"""Limit for everything in an upload together, before and after it is unpacked."""
TASKS_LIMIT = 64
READING_LIMIT_S = 10.0
"""After it no further task of an upload is read, so that nobody keeps the site busy for minutes."""
ENTRIES_LIMIT = 4096
_FIELD = "files"  # of the form
_PATH_LIMIT_BYTES = 200
_ARCHIVES = frozenset(
    {".7z", ".bz2", ".gz", ".jar", ".rar", ".tar", ".tgz", ".whl", ".xz", ".zip", ".zst"}
)
_ALMOST = frozenset({SPECIFICATION, f"{SPECIFICATION}.txt", "task.txt"})
"""Names, without their case, that a specification has by mistake: Windows hides endings."""
_TASK_SUFFIXES = frozenset({".py", ".toml", ".json", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h"})
"""Files without which a task may mean something else: one that is no text refuses the upload."""
_KERNEL_SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp"})
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED, _UTF8 = 1, 0x800  # bits of ZipInfo.flag_bits
_CODE_PAGE = "cp437"  # of MS-DOS
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError),
    *(OSError, ValueError, zlib.error),
)
"""What zipfile raises on an archive that is none; `ValueError` is also that of a bad name."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file as the browser sent it."""

    name: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Uploaded:
    """The tasks of an upload as texts by path.

    refused: what in it was taken for a task or a kernel and could not be read, the field naming the
    file. skipped: paths of what no task has, and nobody has read (`is_clutter`). changed: what was
    changed or added as tasks of another format were read, by their names.
    """

    folders: list[dict[str, str]] = field(default_factory=list)
    refused: list[DataError] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    changed: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_upload(uploads: Sequence[Upload]) -> Uploaded:
    """Read one zip, or several files, as tasks of any format that can be imported.

    A variant becomes a folder of its own. Files that are no text, and no part of a task by their
    names, are left out and named. A native task with faults is kept as it is, without its
    variants, so that it can be mended. Raises `DataError` where the upload is unsafe, too large or
    no text, naming the file, and where there is no task in it.
    """
    if not uploads:
        raise DataError(_FIELD, "are missing: choose a zip, or a task's files")
    if (
        sum(len(each.content) for each in uploads if not is_clutter(each.name))
        > UNPACKED_LIMIT_BYTES
    ):
        raise DataError(_FIELD, f"are larger than {_UNPACKED_MIB} MiB")
    top = "upload"
    skipped: list[str] = []
    no_texts: list[DataError] = []
    if not any(map(_is_zip, uploads)):
        texts = _texts(_arranged(uploads, skipped), no_texts)
    elif len(uploads) == 1:
        texts = _texts(_members(uploads[0].content, skipped), no_texts)
        stem = re.sub(r"[^\w.-]+", "_", PurePosixPath(uploads[0].name).stem)
        top = stem.strip("._")[: _PATH_LIMIT_BYTES // 4] or top
    else:
        raise DataError(_FIELD, "include a zip and other files: choose only one zip, or no zip")
    with TemporaryDirectory(prefix="kbench-upload-") as scratch:
        found = _read(Path(scratch) / top, texts)
    refused = [*found.refused, *no_texts, *_missed(skipped, texts)]
    return replace(found, refused=refused, skipped=skipped)


def _is_zip(upload: Upload) -> bool:
    return upload.name.lower().endswith(".zip") or upload.content[:4] in (
        b"PK\x03\x04",
        b"PK\x05\x06",
    )


def _arranged(uploads: Iterable[Upload], skipped: list[str]) -> Iterator[tuple[str, bytes]]:
    """Single files by the path that they have in a task: a browser sends no folders."""
    every = [(PurePosixPath(_slashed(upload.name)).name, upload.content) for upload in uploads]
    skipped += [_shown_name(name) for name, _ in every if is_clutter(name)]
    named = [(name, content) for name, content in every if not is_clutter(name)]
    names = [name for name, _ in named]
    is_native = SPECIFICATION in names
    listed: dict[str, str] = {}
    for name, content in named:
        if is_specification(Path(name)):
            listed |= {PurePosixPath(path).name: path for path in _listed(content)}
    for name, content in named:
        is_kernel = is_native and PurePosixPath(name).suffix in _KERNEL_SUFFIXES
        yield listed.get(name, KERNELS + name if is_kernel else name), content


def _listed(specification: bytes) -> list[str]:
    """Paths of the kernels in a specification; none where it has faults."""
    try:
        text = decoded(specification, SPECIFICATION)
        kernels = parse_specification(text, SPECIFICATION).get("kernels", [])
        return [kernel["path"] for kernel in kernels if isinstance(kernel["path"], str)]
    except (ValueError, TypeError, KeyError):
        return []


def _members(content: bytes, skipped: list[str]) -> Iterator[tuple[str, bytes]]:
    """Files of a zip. What it says of their sizes is not believed; clutter is not unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if len(entries) > ENTRIES_LIMIT:
                raise DataError(_FIELD, f"must number at most {ENTRIES_LIMIT} in one zip")
            left = UNPACKED_LIMIT_BYTES
            for entry in entries:
                name = _file_name(entry)
                if not name:
                    continue
                if is_clutter(name):
                    skipped.append(_shown_name(name))
                    continue
                _check_member(name, entry)
                with archive.open(entry) as file:
                    member = file.read(left + 1)
                left -= len(member)
                if left < 0:
                    raise DataError(_FIELD, f"unpack to more than {_UNPACKED_MIB} MiB")
                yield name, member
    except DataError:
        raise
    except _BROKEN as error:
        raise DataError(_FIELD, f"cannot be unpacked: {error}") from None


def _check_member(name: str, entry: zipfile.ZipInfo) -> None:
    mode = stat.S_IFMT(entry.external_attr >> 16)
    if mode not in (0, stat.S_IFREG):
        raise DataError(name, "is a link or a special file; put a copy of the file into the zip")
    if entry.flag_bits & _ENCRYPTED:
        raise DataError(name, "is encrypted")
    if entry.compress_type not in _METHODS:
        raise DataError(name, "uses a compression method other than `deflate`")


def _file_name(entry: zipfile.ZipInfo) -> str:
    """The path of a file; empty for a folder's. Raises `DataError` where it leads elsewhere."""
    written = _written(entry)
    name = _slashed(written)
    if name or not written:  # else it is "./" itself
        _check_inside(name.removesuffix("/"))
    return "" if name.endswith("/") else name


def _written(entry: zipfile.ZipInfo) -> str:
    """A name as it was written: macOS writes UTF-8 without saying so, others use an old code page.

    zipfile reads the latter wherever it is told nothing.
    """
    if entry.flag_bits & _UTF8:
        return entry.orig_filename
    try:
        return entry.orig_filename.encode(_CODE_PAGE).decode()
    except UnicodeError:
        return entry.orig_filename


def _slashed(name: str) -> str:
    """A name as Linux has it: Windows puts backslashes into zips, macOS accents apart.

    Some programs put `./` before every name.
    """
    return unicodedata.normalize("NFC", name.replace("\\", "/")).removeprefix("./")


def _shown_name(name: str) -> str:
    return name if name.isprintable() else ascii(name)


def _check_inside(name: str) -> None:
    """Refuse paths that lead out of the upload."""
    if name.startswith("/") or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise DataError(_shown_name(name) or _FIELD, "points outside the upload")
    if re.match(r"[A-Za-z]:", name):
        raise DataError(_shown_name(name), "has a drive letter: it points outside the upload")


def _check_path(name: str) -> None:
    """Refuse paths that lead elsewhere, or mean different files on different systems."""
    _check_inside(name)
    if not name.isprintable() or ":" in name:
        raise DataError(_shown_name(name), "contains a colon or an unprintable character")
    if len(name.encode()) > _PATH_LIMIT_BYTES:
        raise DataError(name, f"is longer than {_PATH_LIMIT_BYTES} bytes")


def _missed(skipped: Iterable[str], texts: Mapping[str, str]) -> Iterator[DataError]:
    """Files that were skipped although Python of the upload names them."""
    modules = {name: text for name, text in texts.items() if name.endswith(".py")}
    for path in skipped:
        base = PurePosixPath(path).name
        for name, text in modules.items():
            if re.search(rf"""["'/]{re.escape(base)}["']""", text):
                line = text[: text.index(base)].count("\n") + 1
                reason = f"is not text, and a task can contain only text, but {name} refers to it"
                yield DataError(path, f"{reason} (line {line}): generate the data in the code")
                break


def _texts(entries: Iterable[tuple[str, bytes]], no_texts: list[DataError]) -> dict[str, str]:
    """The entries as texts by path; `no_texts` gets those that no task needs by their names.

    Raises `DataError` naming one that must be a text and is none.
    """
    texts: dict[str, str] = {}
    seen: dict[str, str] = {}  # as a system sees them that tells no case
    for name, content in entries:
        _check_path(name)
        if PurePosixPath(name).suffix.lower() in _ARCHIVES:
            raise DataError(name, "is an archive inside the upload: unpack it first")
        same = seen.setdefault(name.casefold(), name)
        if name in texts or same != name:
            raise DataError(name, f"appears twice, also as {same}")
        text = _text(name, content, no_texts)
        if text is not None:
            texts[name] = text
    for name in texts:
        for folder in PurePosixPath(name.casefold()).parents:
            if str(folder) in seen:
                raise DataError(name, f"is inside {seen[str(folder)]}, which is a file")
    return texts


def _text(name: str, content: bytes, no_texts: list[DataError]) -> str | None:
    """The text of one file, or None where it is none and no task needs it."""
    try:
        return decoded(content, name)
    except DataError as error:
        if PurePosixPath(name).suffix.lower() in _TASK_SUFFIXES:
            raise
        no_texts.append(DataError(name, f"{error.reason}; a task can contain only text"))
        return None


def _read(folder: Path, texts: Mapping[str, str]) -> Uploaded:
    """Import the texts from `folder`, into which they are written."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    tops = {name.split("/")[0] for name in texts}
    top = folder / tops.pop() if len(tops) == 1 else folder
    start = top if top.is_dir() else folder
    found = Uploaded()
    try:
        bounds = Bounds(most=TASKS_LIMIT, seconds=READING_LIMIT_S)
        rows = import_path(start, bounds=bounds).rows if texts else []
    except (RecursionError, MemoryError):
        raise DataError(_FIELD, "are nested too deeply") from None
    used: set[Path] = set()
    for row in rows:
        used.add(row.path)
        try:
            found.folders.append(_folder(row, folder, texts))
            of = row.path if row.path.is_dir() else row.path.parent
            used |= {of / name for name in found.folders[-1]}
            used.add(places(row.path)[0])  # of a definition's workloads, which the task holds
            if row.task is not None and row.notes:
                found.changed[row.name] = row.notes
        except DataError as error:
            if row.path != start or error.field != "path":  # that says only that there is none
                found.refused.append(_shown(error, row, folder))
            used |= {folder / name for name in texts if row.path in (folder / name).parents}
    if not found.folders:
        raise _without_specification(texts) or _nothing(found.refused)
    left = [name for name in texts if folder / name not in used]
    found.refused.extend(
        DataError(name, "doesn't belong to any task, so it was left out") for name in left
    )
    return found


def _folder(row: Row, root: Path, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of what was read; raises `DataError` where it is to be refused."""
    if row.task is not None:
        written = _own_words(row, root, texts) or write_folder(row.task)
        for name, text in written.items():
            if reason := bad_character(text):
                raise DataError(name, reason)
        return written
    if row.offer is not None:
        raise DataError(_FIELD, f"is a kernel, not a task: submit it to {row.offer.task}")
    assert row.faults
    prefix = "" if row.path == root else f"{row.path.relative_to(root).as_posix()}/"
    if prefix + SPECIFICATION not in texts:
        raise DataErrors(row.faults)
    found = {
        name.removeprefix(prefix): text
        for name, text in texts.items()
        if name.startswith(prefix)
        and (name == prefix + SPECIFICATION or not is_specification(Path(name)))
    }
    size = sum(len(text.encode()) for text in found.values())
    if len(found) > FILES_LIMIT or size > TASK_LIMIT_BYTES:
        raise DataErrors(row.faults)
    return found


def _own_words(row: Row, root: Path, texts: Mapping[str, str]) -> dict[str, str]:
    """A native task as its author wrote it, comments and sweeps and all; nothing of a variant."""
    name = f"{row.path.relative_to(root).as_posix()}/{SPECIFICATION}".removeprefix("./")
    if row.task is None or row.task.format is not TaskFormat.KBENCH or name not in texts:
        return {}
    return {SPECIFICATION: texts[name], **row.task.files}


def _shown(error: DataError, row: Row, root: Path) -> DataError:
    """The error with the paths of the upload instead of those of this machine."""
    path = "" if row.path == root else row.path.relative_to(root).as_posix()
    said = str(error).replace(f"{root}/", "").replace(str(root), "the upload")
    reasons = [line.removeprefix(f"{row.path.name}: ") for line in said.splitlines()]
    return DataError(path or _FIELD, "; ".join(reasons))


def _without_specification(texts: Mapping[str, str]) -> DataError | None:
    """What to say of a task's folder that lacks the file by which it would be known."""
    names = {PurePosixPath(name).name: name for name in texts}
    if SPECIFICATION in names:
        return None
    for name, path in names.items():
        if name.casefold() in _ALMOST:
            return DataError(path, f"must be called {SPECIFICATION}")
    if REFERENCE not in names:
        return None
    reason = f"has no {SPECIFICATION}, which specifies the task's name, abi and workloads"
    return DataError(names[REFERENCE], reason)


def _nothing(refused: Sequence[DataError]) -> DataError:
    if not refused:
        return DataError(
            _FIELD,
            (
                f"contain no task: neither {SPECIFICATION}, nor func_forward.py, nor a "
                "KernelBench file, nor a FlashInfer Trace definition"
            ),
        )
    rest = len(refused) - 1
    more = f" (and {rest} more {'was' if rest == 1 else 'were'} refused)" if rest else ""
    return DataError(refused[0].field, refused[0].reason + more)
