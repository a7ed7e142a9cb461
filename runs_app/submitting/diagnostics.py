"""What a compiler or a profiler says of lines of a source, read from their words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.profile import Profile

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
_LOOP = re.compile(r"(?P<message>the loop at line (?P<line>\d+) is not vectori[sz]ed.*)")


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A mark at a line, counted from 1; `severity` is error, warning or info."""

    line: int
    column: int | None
    severity: str
    message: str


def diagnostics(build: BuildReport | None, profile: Profile | None) -> list[Diagnostic]:
    """All of a result's, the errors first."""
    found = [
        *_of_compiler(build.log if build else ""),
        *_of_profile("\n".join(profile.notes if profile else ())),
    ]
    ranks = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda each: ranks[each.severity])[:_MOST]


def as_json(found: list[Diagnostic]) -> list[dict[str, object]]:
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
