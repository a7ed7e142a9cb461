"""The commands of this host that may be language models.

What runs is named in the host's environment alone, never in a form or in the database: whoever may
change it may run programs on this host anyway. An admin's form chooses one of these names.
"""

from __future__ import annotations

import json
import os
import re

VARIABLE = "KBENCH_AGENT_COMMANDS"
"""JSON object of the host's environment: name -> the program and its arguments, a list."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")


def commands() -> dict[str, list[str]]:
    """The commands that this host names; raises `ValueError` for a setting that is none."""
    text = os.environ.get(VARIABLE, "").strip()
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        raise ValueError(f"{VARIABLE} is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError(f'{VARIABLE} must be an object, such as {{"agent": ["agent", "-p"]}}')
    for name, command in found.items():
        words = isinstance(command, list) and command and all(isinstance(w, str) for w in command)
        if not _NAME.fullmatch(name) or not words:
            raise ValueError(f"{VARIABLE}: {name!r} must be a list of words, with a lowercase name")
    return found
