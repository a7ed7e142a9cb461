"""A kernel's file: its source, and what its directives say of it.

One of the first lines may be a directive: `// kbench: task=softmax device=cpu mode=ranked`;
in Python it begins with `#`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kbench_client.exits import Exit, Stop

LANGUAGES = {".cu": "cuda", ".cpp": "cpp", ".cc": "cpp", ".cxx": "cpp", ".py": "python"}
SUFFIXES = {"cpp": ".cpp", "cuda": ".cu", "python": ".py"}
KEYS = ("task", "device", "mode", "direction", "language", "abi", "agent", "model", "private")
BESIDE = frozenset(
    {
        ".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp",
        ".c", ".cc", ".cpp", ".cxx", ".cu", ".py",
    }
)  # fmt: skip
"""What files of a folder may end with; others, and hidden ones, are left out."""
LIMIT_BYTES = 1 << 20
LIMIT_FILES = 32
_LINES = 60
_DIRECTIVE = re.compile(r"\s*(?://|#)\s*kbench:\s*(.*?)\s*$")
_PYTHON = re.compile(r"^(?:import \w|from [\w.]+ import |def \w+\()", re.MULTILINE)
_CUDA = re.compile(r"\b__(?:global|device)__\b|<<<|#include\s*[<\"](?:cu|cooperative_groups)")
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A source, its language by the file's name, and its directives.

    entry: the source's name, if there are other files. files: the texts of those, by name.
    """

    source: str
    language: str
    directives: Mapping[str, str]
    entry: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def read_kernels(paths: Sequence[Path], entry: str = "") -> Kernel:
    """Read a kernel of one file, of several, or of a folder; raises `Stop` as `read_kernel` does.

    entry: the name of the file that is compiled or imported. Without it, that is the first of
    several files, and in a folder the only one that can be.
    """
    if len(paths) == 1 and not paths[0].is_dir():
        if entry not in ("", paths[0].name):
            reason = f"is {entry!r}, but {paths[0]} is a single file; leave it out, or pass"
            raise Stop(Exit.MISUSE, f"{reason} the folder or all of its files", "entry")
        return read_kernel(paths[0])
    top, files = files_of(paths)
    first = _entry(files, entry, is_folder=len(paths) == 1)
    texts = {path.relative_to(top).as_posix(): text_of(path) for path in files if path != first}
    name = first.relative_to(top).as_posix()  # the site refuses one in a subfolder
    return replace(read_kernel(first), entry=name, files=texts)


def files_of(paths: Sequence[Path]) -> tuple[Path, list[Path]]:
    """The folder of several files, or the folder itself, and all files that are meant.

    Raises `Stop` for a file that lies elsewhere than the first.
    """
    if len(paths) > 1:
        top, found = paths[0].parent, list(paths)
    else:
        top, found = (
            paths[0],
            [path for path in sorted(paths[0].rglob("*")) if _counts(path, paths[0])],
        )
    if len(found) > LIMIT_FILES:
        raise Stop(Exit.MISUSE, f"{top} has {len(found)} files; the limit is {LIMIT_FILES}", "file")
    for path in found:
        if not path.is_relative_to(top) or ".." in path.relative_to(top).parts:
            raise Stop(Exit.MISUSE, f"{path} is not in the entry file's folder, {top}", "file")
        if not path.resolve().is_relative_to(top.resolve()):
            raise Stop(Exit.MISUSE, f"{path} is a link to a file outside {top}", "file")
    return top, found


def _counts(path: Path, folder: Path) -> bool:
    """Whether a file of a folder is meant, by its name."""
    return path.suffix in BESIDE and path.is_file() and not is_hidden(path, folder)


def is_hidden(path: Path, folder: Path) -> bool:
    """Whether the path or a folder on the way to it is hidden, or is a Python cache."""
    return any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)


def _entry(files: Sequence[Path], name: str, *, is_folder: bool) -> Path:
    top = min((path.parent for path in files), key=lambda path: len(path.parts), default=Path())
    if name:
        found = [path for path in files if path == top / name]
    elif is_folder:
        found = [path for path in files if path.parent == top and path.suffix in LANGUAGES]
    else:
        found = list(files[:1])
    if len(found) != 1:
        listed = ", ".join(path.name for path in found) or "none"
        what = f"{name!r} is not among the files" if name else f"could be any of: {listed}"
        raise Stop(Exit.MISUSE, f"{what}; set --entry NAME", "entry")
    return found[0]


def read_kernel(path: Path) -> Kernel:
    """Read a kernel's file; raises `Stop` for what is no text, too large, or wrongly directed."""
    source = text_of(path)
    found = directives(source, str(path))
    language = found.get("language") or LANGUAGES.get(path.suffix.lower(), "")
    if not language:
        known = ", ".join(LANGUAGES)
        raise Stop(
            Exit.MISUSE,
            f"{path.name} has none of the suffixes {known}; set --language",
            "language",
        )
    return Kernel(source=source, language=language, directives=found)


def language_of(source: str, name: str = "") -> str:
    """The language by the file's name if it has a known suffix, else by the source's words."""
    if known := LANGUAGES.get(Path(name).suffix.lower()):
        return known
    if _PYTHON.search(source):
        return "python"
    return "cuda" if _CUDA.search(source) else "cpp"


def text_of(path: Path) -> str:
    """A file's text; raises `Stop` for what is none, or too large."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Stop(Exit.MISUSE, f"{path}: {error.strerror or error}", "file") from None
    if len(raw) > LIMIT_BYTES:
        raise Stop(Exit.MISUSE, f"{path} is larger than {LIMIT_BYTES >> 20} MiB", "file")
    try:
        return raw.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError:
        raise Stop(Exit.MISUSE, f"{path} is not UTF-8 text", "file") from None


def directives(source: str, name: str = "source") -> dict[str, str]:
    """What the directives of a source say, by key; raises `Stop` with the lines that are wrong."""
    found: dict[str, str] = {}
    wrong: list[tuple[str, str]] = []
    for number, line in enumerate(source.splitlines()[:_LINES], 1):
        directive = _DIRECTIVE.fullmatch(line)
        for word in directive.group(1).split() if directive else ():
            key, sign, value = word.partition("=")
            where = f"{name}, line {number}"
            if not sign or not value:
                wrong.append(("", f"{where}: {word!r} is not in the form key=value"))
            elif key not in KEYS:
                wrong.append((key, f"{where}: {key!r} is not one of {', '.join(KEYS)}"))
            elif found.setdefault(key, value) != value:
                wrong.append((key, f"{where}: {key!r} is already set to a different value"))
    _refuse(wrong)
    return found


def _refuse(wrong: Sequence[tuple[str, str]]) -> None:
    """Raise `Stop` for all of these fields and reasons, if there are any."""
    if wrong:
        (named, reason), *also = wrong
        raise Stop(Exit.MISUSE, reason, named, also=also)


def texts_of(submission: Mapping[str, Any]) -> dict[str, str]:
    """The files of a submission by name, its entry first."""
    name = submission.get("entry") or f"kernel{SUFFIXES[submission['language']]}"
    return {name: submission["source"], **(submission.get("files") or {})}


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write texts into a new folder by their names; raises `Stop` for a name that leads out."""
    try:
        folder.mkdir(parents=True)
        for name, text in texts.items():
            path = folder / name
            if ".." in path.parts or not path.is_relative_to(folder):
                raise Stop(Exit.MISUSE, f"{name!r} is not a path inside the folder", "out")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    except FileExistsError:
        raise Stop(Exit.MISUSE, f"{folder} already exists", "out") from None
    except OSError as error:
        raise Stop(Exit.MISUSE, f"{folder}: {error.strerror or error}", "out") from None


def payload(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a submission: what is given comes before what the source says."""
    wanted: dict[str, object] = {**kernel.directives, "language": kernel.language}
    wanted |= {name: value for name, value in given.items() if value not in (None, "", False)}
    wrong = []
    if not wanted.get("task"):
        wrong.append(("task", "set --task NAME, or write `// kbench: task=NAME` in the source"))
    private = str(wanted.get("private", "0")).lower()
    if private not in _FLAGS:
        wrong.append(("private", f"{private!r} is neither true nor false"))
    _refuse(wrong)
    beside = {"entry": kernel.entry, "files": dict(kernel.files)} if kernel.files else {}
    return {**wanted, "private": _FLAGS[private], "source": kernel.source, **beside}
