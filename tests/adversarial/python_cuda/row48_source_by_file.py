# row: 14, 48
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict RUNTIME_ERROR: this is the code that was submitted
# tries: to rewrite its own file while it is prepared, so that measured processes import other code.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os

OTHER = b"""
def forward(A, B, N):
    return A + B
"""
descriptor = os.open(__file__, os.O_WRONLY | os.O_TRUNC)
os.write(descriptor, OTHER)
os.close(descriptor)


def forward(A, B, N):
    raise RuntimeError("this is the code that was submitted")
