"""What the texts of a draft must be to be kept at all, and what they say of themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.kbench import SPECIFICATION, parse_specification
from gpu_runner.data.formats.text import check_files, plain
from tasks_app.errors import CurationError

PATH_LIMIT = 200
"""Characters of a path: well below what a file system takes."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def kept_files(files: Mapping[str, str]) -> dict[str, str]:
    """The texts as they are stored: sorted by path, with LF at the ends of lines.

    What they say may be wrong in any way, but raises `CurationError` for paths and sizes that no
    task may have.
    """
    kept = {path: plain(files[path]) for path in sorted(files)}
    if not kept:
        raise CurationError("files", f"a task needs at least {SPECIFICATION}")
    try:
        check_files(kept.items())
    except DataError as error:
        raise CurationError(error.field, error.reason) from None
    folders = {parent for path in kept for parent in _parents(path)}
    for path, text in kept.items():
        if len(path) > PATH_LIMIT:
            raise CurationError(f"files.{path[:40]}…", f"has more than {PATH_LIMIT} characters")
        if path in folders:
            raise CurationError(f"files.{path}", "is both a file and a folder")
        if not text.isascii() and _has_surrogates(text):
            raise CurationError(f"files.{path}", "is not UTF-8 text")
    return kept


def said_name(files: Mapping[str, str]) -> str:
    """The name in task.toml, be the rest wrong; empty if it is none that a task may have."""
    try:
        name = parse_specification(files.get(SPECIFICATION, ""), SPECIFICATION).get("name")
    except DataError:
        return ""
    return name if isinstance(name, str) and _NAME.fullmatch(name) else ""


def changed_paths(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Paths of the texts that were added, removed or changed."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _parents(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
