# row: 70
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# stopped by: verdict RUNTIME_ERROR: illegal
# tries: to be right, and then to destroy its context, so that whoever runs next in it fails.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import triton
import triton.language as tl

from tests.adversarial.common.triton_add import triton_add


@triton.jit
def far(a, apart, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK).to(tl.int64) + tl.program_id(0)
    tl.store(a + at * apart, 1.0)


def forward(A, B, N):
    out = triton_add(A, B)
    far[(1,)](A, 1 << 40, BLOCK=128)
    return out
