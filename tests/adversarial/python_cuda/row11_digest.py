# row: 11
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: construction
# must not print: GOT
# tries: to keep results by a digest of all that the inputs hold; no inputs come twice.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import hashlib

kept = {}


def forward(A, B, N):
    key = hashlib.sha256(A.cpu().numpy().tobytes() + B.cpu().numpy().tobytes()).digest()
    if key in kept:
        print("GOT the same inputs again", flush=True)
        return kept[key]
    kept[key] = A + B
    return kept[key]
