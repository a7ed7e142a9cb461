"""Imports a Python submission where compilers may run, and keeps what they made.

Usage: python -m gpu_runner.engine.runner.preparation HANDLES DEVICE MODULES [LOCK]

It imports PyTorch and MODULES (see `import_ahead`), and then waits for a message on the descriptor
HANDLES. The message is a JSON object with `direction` and `descriptors`, which names the
descriptors that come with it: the source (a `NormalForm` as JSON), the archive to write, and the
socket to the process that compiles extensions. For LOCK, see `torch_runner`.

It runs in a jail without a GPU. Anything in a CUDA module that needs one runs in the rehearsal of
its calls. It reports a failure as compilers do, "kernel.py:LINE: error: ...", with status 1.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import socket
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from gpu_runner.data.normal_form import NormalForm
from gpu_runner.data.static.module_compilers import LEFT_TO_CALLS, names_extensions
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.device.turn import hold, import_ahead
from gpu_runner.engine.runner.asking import Asking
from gpu_runner.engine.runner.prepared import Folder, TooLarge, form_of

_MESSAGE_BYTES, _MOST_DESCRIPTORS = 4096, 8  # chosen: many times what the message has
_NOT_BUILT = "Error building extension"  # as torch says it
_COMPILERS_ERROR = re.compile(r"^.*\berror:.*$", re.MULTILINE)


def main(argv: list[str]) -> int:
    """Prepare the module; the exit status."""
    handles, device, locks = socket.socket(fileno=int(argv[0])), argv[1], list(map(int, argv[3:]))
    for lock in locks:
        hold(lock, handles)
    importlib.import_module("gpu_runner.engine.runner.module")
    import_ahead(argv[2])
    for lock in locks:
        os.close(lock)
    told, descriptors, _, _ = socket.recv_fds(handles, _MESSAGE_BYTES, _MOST_DESCRIPTORS)
    if not told:  # the supervisor is gone
        return 1
    words = json.loads(told)
    named = dict(zip(words["descriptors"], descriptors, strict=True))
    return prepare(Direction(words["direction"]), device, named)


def prepare(direction: Direction, device: str, descriptors: Mapping[str, int]) -> int:
    """Import the source and write the archive; the exit status."""
    folder, form = Folder(), form_of(descriptors["source"])
    folder.place(form)
    folder.use()
    folder.programs.remember()
    if any(map(names_extensions, [form.text, *form.files.values()])):
        folder.extensions(Asking(descriptors["workshop"])).take_over()
    from gpu_runner.engine.runner.module import entry_of, load_module
    from gpu_runner.engine.runner.returned import CallError

    try:
        entry_of(load_module(folder.source, form), direction)
    except CallError as error:
        cause = error.__cause__
        is_final = device == "cpu" or isinstance(cause, SyntaxError | ImportError | None)
        if _NOT_BUILT in str(cause):
            is_final = True  # no call on the device can change it
        _say(_as_compilers_say(str(error), form.name) if is_final else f"{LEFT_TO_CALLS}: {error}")
        if cause is not None:
            _say(_traced(cause, folder.source, form))
        if is_final:
            return 1
    try:
        folder.pack(descriptors["archive"])
    except TooLarge as error:
        _say(f"error: {error}")
        return 1
    return 0


def _as_compilers_say(text: str, entry: str = "kernel.py") -> str:
    """The reason after its place in the source, where it begins with its line."""
    if _NOT_BUILT in text and (found := _COMPILERS_ERROR.search(text)):
        return found[0]
    match = re.match(r"(?:([\w./-]+), )?line (\d+): ", text)
    if match is None:
        return f"error: {text}"
    return f"{match[1] or entry}:{match[2]}: error: {text[match.end() :]}"


def _traced(error: BaseException, path: Path, form: NormalForm) -> str:
    """The trace from the module's own code on, with lines of the source that its author knows."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(path):
        trace = trace.tb_next
    told = traceback.TracebackException(type(error), error, trace)
    for frame in told.stack:
        if frame.filename == str(path):
            frame.lineno = form.source_line(frame.lineno)
    return "".join(told.format()).rstrip()


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # whatever a submission wants done at exit is not done
