"""Leaves out what a compiler says against its own headers: no author can mend it.

GCC 12 warns of uninitialized values in its vector intrinsics, with some 30 lines for each call.
"""

from __future__ import annotations

import re

_INTRODUCES = re.compile(
    r"(?:In file included from |In .*function |\S+: In |\s+(?:inlined )?from )"
)
_SAYS = re.compile(r"(?P<file>[^\s:][^:]*):\d+(?::\d+)?: (?P<kind>[a-z ]+): ")
_OWN = "/usr/lib/gcc/"


def without_header_warnings(log: str) -> str:
    """The log without warnings of GCC's own headers, and without the notes to them."""
    kept: list[str] = []
    introduction: list[str] = []
    is_left_out = False
    for line in log.splitlines(keepends=True):
        if _INTRODUCES.match(line):
            introduction.append(line)
            continue
        if said := _SAYS.match(line):
            is_own = said["file"].startswith(_OWN)
            is_left_out = is_own and (
                said["kind"] == "warning" or (is_left_out and said["kind"] == "note")
            )
        elif not line.startswith(" "):
            is_left_out = False
        kept += [] if is_left_out else [*introduction, line]
        introduction = []
    return "".join(kept + introduction)
