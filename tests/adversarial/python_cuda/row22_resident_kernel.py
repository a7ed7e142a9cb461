# row: 22
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# stopped by: verdict VIOLATION: left work running
# stopped by: verdict TIME_LIMIT
# tries: to leave a kernel resident that waits for a word of the host's memory, so that later calls
#   need no launch.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.adversarial.common.triton_add import triton_add

cuda, kept = torch.cuda, []
cuda.synchronize = lambda device=None: cuda.current_stream().synchronize()


@triton.jit
def reside(word, turns_taken, LONGEST: tl.constexpr):
    turns = tl.program_id(0)
    go = tl.load(word, volatile=True)
    while (go == 0) & (turns < LONGEST):
        go = tl.load(word, volatile=True)
        turns += 1
    tl.store(turns_taken, turns)


def forward(A, B, N):
    if not kept:
        word = torch.zeros(1, dtype=torch.int32, pin_memory=True)
        turns = torch.zeros(1, dtype=torch.int32, device=A.device)
        kept.extend([cuda.Stream(), word, turns])
        cuda.current_stream().synchronize()
        with cuda.stream(kept[0]):
            reside[(1,)](word, turns, LONGEST=20_000_000)
    return triton_add(A, B)
