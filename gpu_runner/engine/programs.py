"""What other programs answered while a module was prepared, for processes that may start none.

Compilers of kernels ask others for their versions before they look into their own caches, and
`load_inline` runs ninja even where nothing is to be done.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_LIMIT_CHARACTERS = 1 << 20  # chosen: a compiler's version and messages are shorter
_run = subprocess.run


class NotPrepared(PermissionError):
    """A program is asked for that was not started while the module was prepared."""


class Programs:
    """Answers of programs by command line and folder, kept in a file."""

    def __init__(self, path: Path) -> None:
        """Read what the file holds already."""
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path.exists():
            self._known = json.loads(path.read_text())

    def remember(self) -> None:
        """From now on, keep what `subprocess.run` and `check_output` give."""
        setattr(subprocess, "run", self._running)  # noqa: B010

    def recall(self) -> None:
        """From now on, answer from what was kept, and start nothing."""
        setattr(subprocess, "run", self._answering)  # noqa: B010

    def _running(self, *words: Any, check: bool = False, **options: Any) -> Any:
        done = _run(*words, **options)
        kept = {name: _kept(getattr(done, name)) for name in ("stdout", "stderr")}
        key = _key(words[0] if words else options.get("args"), options.get("cwd"))
        self._known[key] = {"code": done.returncode, **kept}
        self._path.write_text(json.dumps(self._known))
        if check:
            done.check_returncode()
        return done

    def _answering(self, *words: Any, check: bool = False, **options: Any) -> Any:
        command: Any = words[0] if words else options.get("args")
        known = self._known.get(_key(command, options.get("cwd")))
        if known is None:
            name = command if isinstance(command, str) else " ".join(map(str, command or ()))
            raise NotPrepared(f"no program may be started in a measured process: {name[:200]}")
        done: subprocess.CompletedProcess[Any] = subprocess.CompletedProcess(
            command, known["code"], _given(known["stdout"]), _given(known["stderr"])
        )
        if check:
            done.check_returncode()
        return done


def _key(command: Any, folder: Any) -> str:
    words = command if isinstance(command, str) else [os.fspath(word) for word in command or ()]
    return json.dumps([words, None if folder is None else str(folder)])


def _kept(output: str | bytes | None) -> Sequence[str] | None:
    """The output as JSON can hold it, after the name of its type."""
    if output is None:
        return None
    if isinstance(output, bytes):
        return ["bytes", output[:_LIMIT_CHARACTERS].decode("latin-1")]
    return ["str", output[:_LIMIT_CHARACTERS]]


def _given(kept: Sequence[str] | None) -> str | bytes | None:
    if kept is None:
        return None
    kind, text = kept
    return text.encode("latin-1") if kind == "bytes" else text
