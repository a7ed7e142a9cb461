"""Files of the cache, written whole or not at all; and files that are no more than memory."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from pathlib import Path
from typing import IO, Any


def write_atomically(path: Path, content: bytes | object, mode: int = 0o644) -> None:
    """Write bytes, or any other value as JSON, so that no reader ever sees a part of it."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as error:  # a full disk is not to be filled with parts of files
        Path(temporary).unlink(missing_ok=True)
        error.filename = error.filename or str(path.parent)
        raise


def unnamed(name: str, content: bytes = b"") -> IO[bytes]:
    """A file in memory, to be read from its beginning; `name` is for who looks at descriptors."""
    file = os.fdopen(os.memfd_create(f"kbench-{name}"), "w+b")
    file.write(content)
    file.seek(0)
    return file


def sealed(name: str, content: bytes) -> IO[bytes]:
    """As `unnamed`; whoever gets it can never change it."""
    file = os.fdopen(os.memfd_create(f"kbench-{name}", os.MFD_ALLOW_SEALING), "w+b")
    file.write(content)
    file.flush()
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(file.fileno(), fcntl.F_ADD_SEALS, seals)
    file.seek(0)
    return file


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())
