"""What other programs answered while a module was prepared, for processes that may start none.

Compilers of kernels ask others for their versions before they look into their own caches, and
others run them even where nothing is to be done.

Usage: python -m gpu_runner.engine.runner.programs ASKED ARCHIVE_FD ANSWERED_FD

Asks anew what ASKED, a file of answers, holds, beside the files of an archive, and writes the
answers. It runs in a jail of its own: no answer that a submission may have changed is carried.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_LIMIT_CHARACTERS = 1 << 20  # chosen: a compiler's version and messages are shorter
_TOGETHER_S = 20.0  # chosen: programs tell their versions in a fraction of a second
_STREAMS = ("stdout", "stderr")
_run = subprocess.run


class NotPrepared(PermissionError):
    """A program is asked for that was not started while the module was prepared."""


class Programs:
    """Answers of programs by command line, folder and environment, kept in a file."""

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
        kept = {name: _kept(getattr(done, name)) for name in _STREAMS}
        key = _key(words[0] if words else options.get("args"), options)
        merged = options.get("stderr") == subprocess.STDOUT
        self._known[key] = {"code": done.returncode, "merged": merged, **kept}
        self._path.write_text(json.dumps(self._known))
        if check:
            done.check_returncode()
        return done

    def _answering(self, *words: Any, check: bool = False, **options: Any) -> Any:
        command: Any = words[0] if words else options.get("args")
        known = self._known.get(_key(command, options))
        if known is None:
            name = command if isinstance(command, str) else " ".join(map(str, command or ()))
            raise NotPrepared(f"no program may be started in a measured process: {name[:200]}")
        done: subprocess.CompletedProcess[Any] = subprocess.CompletedProcess(
            command, known["code"], _given(known["stdout"]), _given(known["stderr"])
        )
        if check:
            done.check_returncode()
        return done


def _key(command: Any, options: Mapping[str, Any]) -> str:
    """All that an answer may depend on: words, folder, and variables that are the program's own."""
    words = command if isinstance(command, str) else [os.fspath(word) for word in command or ()]
    folder, told = options.get("cwd"), options.get("env")
    own = {name: value for name, value in (told or {}).items() if os.environ.get(name) != value}
    return json.dumps([words, None if folder is None else str(folder), own], sort_keys=True)


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


def main(argv: list[str]) -> None:
    """Ask anew; an answer with another status, or without one in time, is left out."""
    from gpu_runner.engine.runner.prepared import Folder

    asked, archive, answered = argv
    Folder().unpack(int(archive))
    until = time.monotonic() + _TOGETHER_S
    found = {}
    for key, before in json.loads(Path(asked).read_text()).items():
        command, folder, own = json.loads(key)
        try:
            done = _run(
                command,
                cwd=folder,
                env={**os.environ, **own},
                shell=isinstance(command, str),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if before["merged"] else subprocess.PIPE,
                timeout=max(0.1, until - time.monotonic()),
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        if done.returncode == before["code"]:
            given = {name: _as_before(before[name], getattr(done, name)) for name in _STREAMS}
            found[key] = {**before, **given}
    with os.fdopen(int(answered), "w") as file:
        json.dump(found, file)


def _as_before(before: Sequence[str] | None, output: bytes | None) -> Sequence[str] | None:
    """The output as text or bytes, whichever was asked for."""
    if before is None:
        return None
    told = output or b""
    return _kept(told if before[0] == "bytes" else told.decode(errors="replace"))


if __name__ == "__main__":
    main(sys.argv[1:])
