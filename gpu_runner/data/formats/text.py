"""Read the text files of a task: bounded, UTF-8, and never out of the task's folder."""

from __future__ import annotations

import codecs
import json
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from gpu_runner.data.characters import bad_character
from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.clutter import is_clutter

TASK_LIMIT_BYTES = 2 * 1024 * 1024
"""Limit for the texts of all the files of a task together."""
FILES_LIMIT = 256  # chosen: a task has some ten
_MARK = "\ufeff"
_WIDE_MARKS = {  # that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def plain(text: str) -> str:
    """The text without what editors on Windows add: a byte order mark, and CR at ends of lines."""
    return text.removeprefix(_MARK).replace("\r\n", "\n").replace("\r", "\n")


def decoded(content: bytes, name: str) -> str:
    """The `plain` text of a file's bytes.

    Raises `DataError` (field `name`) where they are not UTF-8, or hold a NUL character.
    """
    wide = next((word for mark, word in _WIDE_MARKS.items() if content.startswith(mark)), "")
    if wide:
        raise DataError(name, f"is {wide} text: save it as UTF-8")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise DataError(name, f"is not UTF-8 text (byte {error.start})") from None
    if reason := bad_character(text):
        raise DataError(name, reason)
    return plain(text)


def read_text(path: Path, name: str, limit: int = TASK_LIMIT_BYTES) -> str:
    """The `plain` text of one regular file.

    Raises `DataError` (field `name`) where it is missing, no regular file, over `limit` bytes,
    not UTF-8, or holds a NUL character.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(name, "is not a regular file")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise DataError(name, f"cannot be read: {error.strerror}") from None
    if len(content) > limit:
        raise DataError(name, f"is larger than {limit} bytes, the limit for all files together")
    return decoded(content, name)


def read_files(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Texts of the named files of `folder`, which together keep to `TASK_LIMIT_BYTES`.

    Names are relative POSIX paths. Raises `DataError` as `read_text` does, and on a symbolic
    link that leads out of the folder.
    """
    files: dict[str, str] = {}
    left = TASK_LIMIT_BYTES
    root = folder.resolve()
    for name in sorted(names):
        path = folder / name
        if not path.resolve().is_relative_to(root):
            reason = "is outside the folder, or a symbolic link out of it; copy the file into it"
            raise DataError(name, reason)
        if len(files) == FILES_LIMIT:
            raise DataError("files", f"a task has at most {FILES_LIMIT} files")
        files[name] = read_text(path, name, left)
        left -= len(files[name].encode())
    return files


def list_files(folder: Path) -> list[str]:
    """Relative POSIX paths of all files under `folder`, but for clutter (`is_clutter`).

    Raises `DataError` where `folder` or one inside it cannot be listed, or is a symbolic link.
    """
    try:
        return list(_walk(folder, folder))
    except OSError as error:
        raise DataError("path", f"{error.filename!r}: {error.strerror}") from None


def _walk(root: Path, folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if is_clutter(path.name):
            continue
        name = path.relative_to(root).as_posix()
        if not path.is_dir():
            yield name
        elif path.is_symlink():
            raise DataError(name, "is a symbolic link to a folder; copy the folder")
        else:
            yield from _walk(root, path)


def check_files(files: Iterable[tuple[str, str]]) -> None:
    """Refuse texts that `read_files` could not have returned; for tasks that came as JSON.

    Raises `DataError` on a path that is absolute, leaves the folder or is not plain, and on more
    text or more files than a task may have.
    """
    left = TASK_LIMIT_BYTES
    for count, (name, text) in enumerate(files):
        parts = PurePosixPath(name).parts
        plain = name and name == "/".join(parts) and not {"/", "..", "."} & set(parts)
        if not plain or "\\" in name or not name.isprintable():
            raise DataError(f"files.{name}", "is not a relative path inside the task's folder")
        if reason := bad_character(text):
            raise DataError(f"files.{name}", reason)
        left -= len(text.encode(errors="replace"))
        if left < 0:
            raise DataError("files", f"are larger than {TASK_LIMIT_BYTES} bytes in total")
        if count >= FILES_LIMIT:
            raise DataError("files", f"a task has at most {FILES_LIMIT} files")


def object_of(text: str, name: str) -> dict[str, Any]:
    """A JSON object; raises `DataError` (field `name`) on anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(name, f"is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise DataError(name, "must be an object")
    return found
