"""What a compiler or a profiler says of lines of a source, read from their words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.profile import Profile
from runs_app.core.files import ENTRY, Place, place_of
from tasks_app.templatetags.source import ShownFile

_MOST = 50
_LONGEST = 300  # characters
_MESSAGE = re.compile(
    r"(?<![\w./-])(?:/tmp/)?(?P<file>[\w./-]+)(?:"
    r":(?P<line>\d+):(?:(?P<column>\d+):)? (?P<kind>fatal error|error|warning)"
    r"|\((?P<nvline>\d+)\): (?P<nvkind>error|warning|remark)(?: ?#[\w-]+)?"
    r"): (?P<message>.+)"
)
_LOOP = re.compile(r"(?P<message>the loop at line (?P<line>\d+) is not vectori[sz]ed.*)")


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A mark at a line, counted from 1; `severity` is error, warning or info."""

    line: int
    column: int | None
    severity: str
    message: str
    place: Place


def diagnostics(
    build: BuildReport | None, profile: Profile | None, files: Sequence[ShownFile]
) -> list[Diagnostic]:
    """All of a result's, the errors first. files: the submission's."""
    found = [
        *_of_compiler(build.log if build else "", files),
        *_of_profile("\n".join(profile.notes if profile else ()), files),
    ]
    ranks = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda each: ranks[each.severity])[:_MOST]


def as_json(found: list[Diagnostic]) -> list[dict[str, object]]:
    """The same for the editor's script, which shows the entry."""
    shown = ("line", "column", "severity", "message")
    return [
        {name: getattr(each, name) for name in shown}
        for each in found
        if each.place.anchor.startswith(ENTRY)
    ]


def _of_compiler(log: str, files: Sequence[ShownFile]) -> Iterator[Diagnostic]:
    names = [file.name for file in files]
    for text in log.splitlines():
        match = _MESSAGE.search(text)
        name = posixpath.normpath(match["file"]) if match else ""
        if match is None or name not in names:
            continue
        column, kind = match["column"], match["kind"] or match["nvkind"]
        line = int((match["line"] or match["nvline"])[:9])
        yield Diagnostic(
            line=line,
            column=int(column[:9]) if column else None,
            severity="error" if "error" in kind else "warning",
            message=match["message"][:_LONGEST],
            place=place_of(files, name, line),
        )


def _of_profile(notes: str, files: Sequence[ShownFile]) -> Iterator[Diagnostic]:
    for match in _LOOP.finditer(notes):
        line, message = int(match["line"][:9]), match["message"][:_LONGEST]
        place = place_of(files, "", line)
        yield Diagnostic(line=line, column=None, severity="info", message=message, place=place)
