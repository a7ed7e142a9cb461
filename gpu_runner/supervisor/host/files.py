"""Files of the cache: written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes | Any, mode: int = 0o644) -> None:
    """Write bytes, or any other value as JSON, so that no reader ever sees a part of it."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.chmod(temporary, mode)
    os.replace(temporary, path)


def read_json(path: Path) -> Any:
    """The JSON value in a file."""
    return json.loads(path.read_text())
