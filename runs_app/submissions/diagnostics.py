"""What a compiler or a profiler says of lines of a source, read from their words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

_MOST = 50
_LONGEST = 300  # characters
_GCC = re.compile(
    r"kernel\.(?:cu|cpp|py):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>fatal error|error|warning): (?P<message>.+)"
)
_NVCC = re.compile(
    r"kernel\.(?:cu|cpp)\((?P<line>\d+)\): (?P<kind>error|warning|remark)"
    r"(?: ?#[\w-]+)?: (?P<message>.+)"
)
_LOOP = re.compile(r"(?P<message>the loop at line (?P<line>\d+) is not vectorised.*)")


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A mark at a line, counted from 1; `severity` is error, warning or info."""

    line: int
    column: int | None
    severity: str
    message: str


def diagnostics(document: Mapping[str, Any]) -> list[Diagnostic]:
    """All of a result's, the errors first."""
    build, profile = document.get("build") or {}, document.get("profile") or {}
    found = [
        *_of_compiler(build.get("log", "")),
        *_of_profile("\n".join(profile.get("notes", ()))),
    ]
    ranks = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda each: ranks[each.severity])[:_MOST]


def as_json(found: list[Diagnostic]) -> list[dict[str, Any]]:
    """The same for the editor's script."""
    return [asdict(each) for each in found]


def _of_compiler(log: str) -> Iterator[Diagnostic]:
    for text in log.splitlines():
        match = _GCC.search(text) or _NVCC.search(text)
        if match is None:
            continue
        groups = match.groupdict()
        column = groups.get("column")
        yield Diagnostic(
            line=int(groups["line"][:9]),
            column=int(column[:9]) if column else None,
            severity="error" if "error" in groups["kind"] else "warning",
            message=groups["message"][:_LONGEST],
        )


def _of_profile(notes: str) -> Iterator[Diagnostic]:
    for match in _LOOP.finditer(notes):
        line, message = int(match["line"][:9]), match["message"][:_LONGEST]
        yield Diagnostic(line=line, column=None, severity="info", message=message)
