# row: 66, 67
# device: cuda
# task: vector_add
# workloads: n262144
# mode: quick
# stopped by: construction
# at least: 60000 ns
# tries: to read its inputs with the priority that a flush spares, and to warm the cache with them
#   at the gate; each place is known only when the one before has been read, and that takes some 80
#   us where they come from the device's memory, and half of it where they are still in the cache.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.adversarial.common.inside import engine, found_around
from tests.adversarial.common.triton_add import triton_add

PLACES = 192


@triton.jit
def walk(a, found, apart, count, PLACES: tl.constexpr):
    step = tl.program_id(0)
    for place in range(PLACES):
        at = place * apart + step
        value = tl.load(a + at, eviction_policy="evict_last")
        step = (value > 1e30).to(tl.int32) * (at < count).to(tl.int32)
    tl.store(found, step)


def walked(A):
    found = torch.empty(1, dtype=torch.int32, device=A.device)
    walk[(1,)](A, found, A.numel() // PLACES // 32 * 32, A.numel(), PLACES=PLACES, num_warps=1)


def wake(self):
    coming = found_around("one")
    if coming is not None:
        walked(coming.tensors[0])


engine("clock").CudaClock.wake = wake


def forward(A, B, N):
    walked(A)
    return triton_add(A, B)
