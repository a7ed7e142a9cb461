"""Lines of JSON that a long measurement adds to a file, so that a later call goes on from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    """What earlier calls have written; a last line that was cut off does not count."""
    found: list[Line] = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return found


def add_line(path: Path, line: Line) -> None:
    """Keep a line at once, after one that was cut off too."""
    broken = path.exists() and not path.read_text().endswith("\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write(("\n" if broken else "") + json.dumps(line) + "\n")
