"""Imports a Python submission where compilers may run, and keeps what they made.

Usage: python -m gpu_runner.engine.preparation SOURCE DIRECTION DEVICE ARCHIVE

It runs in a jail without a GPU. What of a CUDA module needs one is left to the rehearsal of its
calls. A failure is told as compilers do, "kernel.py:LINE: error: ...", and is status 1.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from pathlib import Path
from types import TracebackType

from gpu_runner.data.static.module_compilers import LEFT_TO_CALLS
from gpu_runner.engine.prepared import Folder, TooLarge

_NO_NINJA, _NOT_BUILT = "Ninja is required", "Error building extension"  # as torch says it
_COMPILERS_ERROR = re.compile(r"^.*\berror:.*$", re.MULTILINE)


def main(argv: list[str]) -> int:
    """Prepare the module; the exit status."""
    source, direction, device, archive = argv
    folder = Folder()
    folder.place(Path(source).read_text(encoding="utf-8"))
    folder.use()
    folder.programs.remember()
    from gpu_runner.data.verdict import Direction
    from gpu_runner.engine.module import entry_of, load_module
    from gpu_runner.engine.returned import CallError

    try:
        entry_of(load_module(folder.source), Direction(direction))
    except CallError as error:
        cause = error.__cause__
        is_final = device == "cpu" or isinstance(cause, SyntaxError | ImportError | None)
        if any(words in str(cause) for words in (_NO_NINJA, _NOT_BUILT)):
            is_final = True  # no call on the device can change it
        _say(_as_compilers_say(str(error)) if is_final else f"{LEFT_TO_CALLS}: {error}")
        if cause is not None:
            own = _own_frames(cause.__traceback__, str(folder.source))
            traceback.print_exception(type(cause), cause, own, file=sys.stdout)
        if is_final:
            return 1
    descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        folder.pack(descriptor)
    except TooLarge as error:
        _say(f"error: {error}")
        return 1
    return 0


def _as_compilers_say(text: str) -> str:
    """The reason after its place in the source, where it begins with its line."""
    if _NO_NINJA in text:
        return "error: this runner has no ninja, which load_inline needs"
    if _NOT_BUILT in text and (found := _COMPILERS_ERROR.search(text)):
        return found[0]
    match = re.match(r"line (\d+): ", text)
    return f"kernel.py:{match[1]}: error: {text[match.end() :]}" if match else f"error: {text}"


def _own_frames(trace: TracebackType | None, name: str) -> TracebackType | None:
    """The trace from the module's own code on: what imports it is no concern of its author."""
    while trace is not None and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    return trace


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # whatever a submission wants done at exit is not done
