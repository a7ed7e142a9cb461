"""Characters that text may have in JSON, and that neither a file nor a database can hold."""

from __future__ import annotations

import re
from typing import Any

_BAD = re.compile("[\0\ud800-\udfff]")


def bad_character(value: Any) -> str:
    """What is wrong with the first such character in a JSON value, where it is, and what to do.

    Empty if there is none.
    """
    if isinstance(value, dict):
        return next(filter(None, map(bad_character, (*value, *value.values()))), "")
    if isinstance(value, list | tuple):
        return next(filter(None, map(bad_character, value)), "")
    found = _BAD.search(value) if isinstance(value, str) else None
    if found is None:
        return ""
    what = "a NUL character" if found[0] == "\0" else "half a character (an unpaired surrogate)"
    line = value.count("\n", 0, found.start()) + 1
    column = found.start() - value.rfind("\n", 0, found.start())
    return f"contains {what} in line {line}, column {column}: remove it, or save the text as UTF-8"
