"""The process that runs functions over tensors, a submission's or a baseline: bytes in, bytes out.

Usage: python -m gpu_runner.engine.torch_runner CONTROL_FD INPUTS OUTPUTS
           (extension PATH NAME SUPPORT | baseline eager|compiled|null DIRECTION SUPPORT)
           INTERPOSED DEVICE

INPUTS and OUTPUTS are descriptors of shared files, or FD:BYTES of a device's memory. INTERPOSED is
the library through which launches on a device pass, or "-".
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys


def main(argv: list[str]) -> None:
    """Serve the supervisor; any failure is an ERROR frame and the end."""
    # OpenMP reads what this sets when PyTorch is imported, and so the imports come after it.
    ctypes.CDLL(argv[-3]).kb_spin_briefly()
    if argv[-2] != "-":  # whatever is loaded later finds its functions before CUDA's own
        ctypes.CDLL(argv[-2], mode=ctypes.RTLD_GLOBAL)
    from gpu_runner.data.wire import Reply, frame, pack_error
    from gpu_runner.engine.failure import failure_of
    from gpu_runner.engine.runner import run

    control = socket.socket(fileno=int(argv[0]))
    try:
        run(control, argv[1:3], argv[3:-2], argv[-1])
    except EOFError:  # the supervisor is gone
        os._exit(3)
    except (Exception, SystemExit) as error:
        failure = failure_of(error)
        control.sendall(frame(Reply.ERROR, pack_error(failure.code, failure.text)))
        os._exit(1)
    os._exit(0)  # whatever a submission wants done at exit is not done


if __name__ == "__main__":
    main(sys.argv[1:])
