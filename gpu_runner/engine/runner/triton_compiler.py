"""Compiles Triton kernels for other processes, in a jail without a device.

Usage: python -m gpu_runner.engine.runner.triton_compiler ASKED

On the socket ASKED come two files with each message: the request (see `data.asking`), and the one
that takes the answer, which stays empty where a stage fails. A message in return ends each.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from enum import Enum
from typing import cast

from gpu_runner.data import asking


def main(argv: list[str]) -> None:
    """Serve until nobody asks any more."""
    asked = socket.socket(fileno=int(argv[0]))
    while True:
        told, descriptors, _, _ = socket.recv_fds(asked, 1, 2)
        if not told:
            return
        request, answer = descriptors
        try:
            made = asking.written(
                compiled(cast(asking.TritonRequest, asking.read(_content(request))))
            )
            os.pwrite(answer, made, 0)
        except Exception:  # whoever asked does it again, and tells what Triton says about it
            traceback.print_exc()
        for descriptor in descriptors:
            os.close(descriptor)
        asked.send(told)


def compiled(asked: asking.TritonRequest) -> dict[str, object]:
    """The answer to a request."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    target = GPUTarget(*asked["target"])
    backend, context = make_backend(target), ir.context()
    options = backend.parse_options(asked["options"])
    if vars(options) != asked["options"]:
        raise ValueError("these options can't be determined from outside")
    ir.load_dialects(context)
    backend.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(asked["ttir"])
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    stages: dict[str, Callable[[object, dict[str, object]], object]] = {}
    backend.add_stages(stages, options, *_language())
    known = {**vars(options), "target": target}
    metadata, made = dict(known), {}
    for name in list(stages)[list(stages).index("ttir") + 1 :]:
        module = stages[name](module, metadata)
        made[name] = module if isinstance(module, bytes) else str(module)
    noted = dict(item for item in metadata.items() if item not in known.items())
    return {"stages": made, "metadata": noted}


def _language() -> list[Enum]:
    try:
        from triton.backends.compiler import Language
    except ImportError:  # of older versions there is one
        return []
    return [Language.TRITON]


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
