"""A kernel's file: its source, and what its directives say of it.

One of the first lines may be a directive: `// kbench: task=softmax device=cpu mode=ranked`;
in Python it begins with `#`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbench_client.exits import Exit, Stop

LANGUAGES = {".cu": "cuda", ".cpp": "cpp", ".cc": "cpp", ".cxx": "cpp", ".py": "python"}
KEYS = ("task", "device", "mode", "direction", "language", "abi", "agent", "model", "private")
LIMIT_BYTES = 1 << 20
_LINES = 60
_DIRECTIVE = re.compile(r"\s*(?://|#)\s*kbench:\s*(.*?)\s*$")
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A source, its language by the file's name, and its directives."""

    source: str
    language: str
    directives: Mapping[str, str]


def read_kernel(path: Path) -> Kernel:
    """Read a kernel's file; raises `Stop` for what is no text, too large, or wrongly directed."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Stop(Exit.MISUSE, f"{path}: {error.strerror or error}", "file") from None
    if len(raw) > LIMIT_BYTES:
        raise Stop(Exit.MISUSE, f"{path} is larger than {LIMIT_BYTES >> 20} MiB", "file")
    try:
        source = raw.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError:
        raise Stop(Exit.MISUSE, f"{path} is not text in UTF-8", "file") from None
    found = directives(source, str(path))
    language = found.get("language") or LANGUAGES.get(path.suffix.lower(), "")
    if not language:
        known = ", ".join(LANGUAGES)
        raise Stop(
            Exit.MISUSE,
            f"{path.name} has none of the suffixes {known}; give --language",
            "language",
        )
    return Kernel(source=source, language=language, directives=found)


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
                wrong.append(("", f"{where}: {word!r} is not of the form key=value"))
            elif key not in KEYS:
                wrong.append((key, f"{where}: not one of {', '.join(KEYS)}"))
            elif found.setdefault(key, value) != value:
                wrong.append((key, f"{where}: already set, to another value"))
    _refuse(wrong)
    return found


def _refuse(wrong: Sequence[tuple[str, str]]) -> None:
    """Raise `Stop` for all of these fields and reasons, if there are any."""
    if wrong:
        (field, reason), *also = wrong
        raise Stop(Exit.MISUSE, reason, field, also=also)


def payload(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a submission: what is given comes before what the source says."""
    wanted: dict[str, object] = {**kernel.directives, "language": kernel.language}
    wanted |= {name: value for name, value in given.items() if value not in (None, "", False)}
    wrong = []
    if not wanted.get("task"):
        wrong.append(("task", "give --task NAME, or write `// kbench: task=NAME` in the source"))
    private = str(wanted.get("private", "0")).lower()
    if private not in _FLAGS:
        wrong.append(("private", f"{private!r} is neither true nor false"))
    _refuse(wrong)
    return {**wanted, "private": _FLAGS[private], "source": kernel.source}
