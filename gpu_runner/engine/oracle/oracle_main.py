"""The process that holds a task's reference: answers the supervisor's JSON lines.

Usage: python -m gpu_runner.engine.oracle.oracle_main CONTROL_FD HANDLES_FD [LOCK_FD DEVICE]

With a device, it was started ahead of any evaluation: it opens the device and uses its code once,
while it holds the lock that whoever measures holds.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from gpu_runner.engine.oracle.oracle import Oracle


def serve(control: socket.socket, oracle: Oracle) -> None:
    """Answer one JSON line after the other until the supervisor hangs up."""
    with control.makefile("rw", encoding="utf-8", newline="\n") as stream:
        _serve_lines(stream, oracle)


def _serve_lines(stream: TextIO, oracle: Oracle) -> None:
    for line in stream:
        answer = oracle.answer(json.loads(line))
        stream.write(json.dumps(answer) + "\n")
        stream.flush()


def main(argv: list[str]) -> None:
    """Serve the supervisor at the other end of the descriptors."""
    # Its idle threads would otherwise spin on cores on which a runner is being timed. OpenMP reads
    # this when PyTorch is imported, and so the imports come after it.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    gc.disable()  # PyTorch makes objects by the hundred thousand, and none of them is garbage
    from gpu_runner.engine.device import torch_settings
    from gpu_runner.engine.device.heap import keep_freed_memory
    from gpu_runner.engine.oracle.oracle import Oracle

    gc.freeze()
    gc.enable()
    control, handles = map(int, argv[:2])
    torch_settings.settle()
    torch_settings.settle_reproducibly()
    keep_freed_memory()
    if len(argv) > 2:
        from gpu_runner.engine.oracle.rehearsal import rehearse

        rehearse(int(argv[2]), control, argv[3])
    oracle = Oracle(socket.socket(fileno=handles))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the supervisor is gone
        serve(socket.socket(fileno=control), oracle)


if __name__ == "__main__":
    main(sys.argv[1:])
