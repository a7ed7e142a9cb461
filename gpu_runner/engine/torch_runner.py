"""The process that runs functions over tensors, a submission's or a baseline: bytes in, bytes out.

Usage: python -m gpu_runner.engine.torch_runner CONTROL_FD HANDLES_FD SUPPORT INTERPOSED DEVICE

It imports PyTorch and then waits for a message on HANDLES_FD: a JSON object with `role`, the words
of what it runs (`extension NAME`, `module DIRECTION measured|rehearsed`, or `baseline
eager|compiled|empty DIRECTION`), and `sizes` of a device's memory; with the descriptors of inputs,
outputs, the extension's library or the module's archive, and a rehearsal's new archive.
INTERPOSED is our library through which launches on a device pass, or "-".
"""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
from pathlib import Path


def main(argv: list[str]) -> None:
    """Serve the supervisor; any failure is an ERROR frame and the end."""
    # OpenMP reads what this sets when PyTorch is imported, and so the imports come after it.
    ctypes.CDLL(argv[2]).kb_spin_briefly()
    if argv[3] != "-":  # whatever is loaded later finds its functions before CUDA's own
        ctypes.CDLL(argv[3], mode=ctypes.RTLD_GLOBAL)
    gc.disable()  # for good; to look for garbage among what is imported takes a third of a second
    from gpu_runner.data.wire import Reply, frame, pack_error
    from gpu_runner.engine.failure import failure_of
    from gpu_runner.engine.runner import Beginning, run

    control, handles = (socket.socket(fileno=int(word)) for word in argv[:2])
    try:
        run(control, Beginning.receive(handles), Path(argv[2]), argv[4])
    except EOFError:  # the supervisor is gone
        os._exit(3)
    except (Exception, SystemExit) as error:
        failure = failure_of(error)
        control.sendall(frame(Reply.ERROR, pack_error(failure.code, failure.text)))
        os._exit(1)
    os._exit(0)  # whatever a submission wants done at exit is not done


if __name__ == "__main__":
    main(sys.argv[1:])
