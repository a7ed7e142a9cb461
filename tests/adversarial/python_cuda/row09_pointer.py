# row: 9
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# stopped by: verdict WRONG_RESULT: wrong
# tries: to keep results by the addresses of the inputs.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.triton_add import triton_add

kept = {}


def forward(A, B, N):
    key = A.data_ptr(), B.data_ptr(), N
    if key not in kept:
        kept[key] = triton_add(A, B)
    return kept[key]
