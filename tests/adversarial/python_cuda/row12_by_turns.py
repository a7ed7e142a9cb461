# row: 12, 16
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# stopped by: verdict WRONG_RESULT: wrong
# tries: to hand out three results by turns.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.triton_add import triton_add

kept = {}


def forward(A, B, N):
    mine = kept.setdefault(N, [])
    mine.append(triton_add(A, B) if len(mine) < 3 else mine.pop(0))
    return mine[-1]
