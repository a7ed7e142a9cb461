"""The process that runs functions over tensors, a submission's or a baseline: bytes in, bytes out.

Usage: python -m MODULE CONTROL HANDLES SUPPORT INTERPOSED DEVICE MODULES [LOCK]

It imports PyTorch and MODULES (`import_ahead`), and then waits for a message on HANDLES: JSON
with `role`, the words of what it runs (`extension NAME`, `module DIRECTION measured|rehearsed`, or
`baseline eager|compiled|empty DIRECTION`), `sizes` of memory, and `descriptors`, the names of those
that come with it: of the gate, a device's inputs and outputs, the extension's library, or the
module's archive and source. A rehearsal gets two more: for its new archive, and the socket to
whoever compiles extensions. On a CPU, large inputs come through HANDLES with each call.
CONTROL, HANDLES and LOCK are descriptors. INTERPOSED is our library that launches on a device go
through, or "-". LOCK is the lock that measurements hold. The process holds it while it imports
PyTorch, unless the message comes first.
"""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
from pathlib import Path

from gpu_runner.engine.device.turn import hold, import_ahead


def main(argv: list[str]) -> None:
    """Serve the supervisor; any failure is an ERROR frame and the end."""
    # OpenMP reads what this sets when PyTorch is imported, and so the imports come after it.
    ctypes.CDLL(argv[2]).kb_spin_briefly()
    if argv[3] != "-":  # whatever is loaded later finds its functions before CUDA's own
        ctypes.CDLL(argv[3], mode=ctypes.RTLD_GLOBAL)
    gc.disable()  # for good; to look for garbage among what is imported takes a third of a second
    control, handles = (socket.socket(fileno=int(word)) for word in argv[:2])
    locks = [int(word) for word in argv[6:]]
    for lock in locks:
        hold(lock, handles)
    from gpu_runner.data.wire import Reply, frame, pack_error
    from gpu_runner.engine.runner.failure import failure_of
    from gpu_runner.engine.runner.runner import run

    import_ahead(argv[5])
    for lock in locks:
        os.close(lock)
    try:
        run(control, handles, Path(argv[2]), argv[4])
    except EOFError:  # the supervisor is gone
        os._exit(3)
    except (Exception, SystemExit) as error:
        failure = failure_of(error)
        control.sendall(frame(Reply.ERROR, pack_error(failure.code, failure.text)))
        os._exit(1)
    os._exit(0)  # whatever a submission wants done at exit is not done


if __name__ == "__main__":
    main(sys.argv[1:])
