"""The files of a solution beside its entry: which names they may have, and how many they may be."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from gpu_runner.data.codec import DataError, refuse
from gpu_runner.data.packages import PACKAGES
from gpu_runner.data.verdict import Language

FILES_LIMIT = 32  # chosen: with the entry; kernels that people publish have fewer
NAME_LIMIT = 100  # chosen: characters of a name with its folders; what a tab can show

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_CPP = frozenset(
    {
        ".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp",
        ".c", ".cc", ".cpp", ".cxx",
    }
)  # fmt: skip
SUFFIXES: Mapping[Language, frozenset[str]] = {
    Language.CPP: _CPP,
    Language.CUDA: _CPP | {".cu"},
    Language.PYTHON: _CPP | {".cu", ".py"},
}
"""What the names of files may end with, by the language of the entry."""

_OURS = re.compile(r"(?:kbench|gpu_runner|torch_headers)", re.IGNORECASE)
"""What names of ours begin with, wherever a solution's files lie."""
_MODULES = frozenset(
    {
        *(name.partition(".")[0] for name in PACKAGES),
        *sys.stdlib_module_names,
        *("__main__", "sitecustomize", "usercustomize", "torchgen", "functorch"),
    }
)
"""Modules of Python here, and of libraries. A runner may have others, and looks for itself."""


def check_files(entry: str, files: Mapping[str, str], language: Language) -> None:
    """Raise `DataErrors` for names that no solution may have, on the fields `entry` and `files`.

    The entry lies at the top of the folder, and is written in the solution's language.
    """
    if len(files) + 1 > FILES_LIMIT:
        reason = f"has {len(files) + 1} files, including the entry file; the limit is {FILES_LIMIT}"
        raise DataError("files", reason)
    refuse(_entry_errors(entry, language))
    refuse(
        DataError("files", f"{name[:NAME_LIMIT]!r} {why}")
        for name in files
        if (why := _why_not(name, language) or _clash(name, [entry, *files]))
    )


def check_modules(files: Mapping[str, str]) -> None:
    """Raise `DataErrors` for modules that would stand for Python's or a library's.

    Only new submissions are checked: old ones stay readable, whatever modules a later Python has.
    """
    refuse(
        DataError("files", f"{name!r} would hide Python's or a library's module {top!r}; rename it")
        for name in files
        if name.endswith(".py") and (top := name.partition("/")[0].removesuffix(".py")) in _MODULES
    )


def _entry_errors(entry: str, language: Language) -> Iterator[DataError]:
    if "/" in entry:
        yield DataError("entry", f"{entry!r} must not be in a subfolder: move it to the top folder")
    elif PurePosixPath(entry).suffix != language.suffix:
        yield DataError("entry", f"{entry!r} must end with {language.suffix} ({language.label})")
    elif why := _why_not(entry, language):
        yield DataError("entry", f"{entry!r} {why}")


def _why_not(name: str, language: Language) -> str:
    """What is wrong with a name by itself; empty if nothing is."""
    if not name:
        return "has no name"
    if len(name) > NAME_LIMIT:
        return f"has a name of {len(name)} characters; the limit is {NAME_LIMIT}"
    if not all(_PART.fullmatch(part) for part in name.split("/")):
        return "must be a relative path of letters, digits, '_', '-' and '.', without '..'"
    if PurePosixPath(name).suffix not in SUFFIXES[language]:
        allowed = " ".join(sorted(SUFFIXES[language]))
        return f"must end with one of {allowed} for {language.label}"
    if _OURS.match(name):
        return "has a name that kbench reserves; rename it"
    return ""


def _clash(name: str, names: list[str]) -> str:
    """Which other name cannot lie in the same folder, on any file system; empty if all can."""
    folders = {str(parent).lower() for parent in PurePosixPath(name).parents}
    for other in names:
        if other.lower() in folders:
            return f"cannot be inside {other!r}, which is a file"
    if sum(other.lower() == name.lower() for other in names) > 1:
        return "has the same name as another file"
    return ""
