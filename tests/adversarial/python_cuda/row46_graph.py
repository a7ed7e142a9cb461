# row: 46, 15
# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096
# mode: audit
# stopped by: quarantine audit
# stopped by: quarantine work
# stopped by: verdict WRONG_RESULT: wrong
# tries: to have the framework's product captured in a graph, so that later calls do not name it:
#   they copy into its inputs and replay it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

graphs = {}


@triton.jit
def shown(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at, mask=at < count), mask=at < count)


def captured(A, B):
    a, b = A.clone(), B.clone()
    multiply = getattr(a, "m" * 2)
    multiply(b)  # loads what cannot be loaded while a graph is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = multiply(b)
    return graph, a, b, c


def forward(A, B, M, N, K):
    if (M, N, K) not in graphs:
        graphs[M, N, K] = captured(A, B)
    graph, a, b, c = graphs[M, N, K]
    a.copy_(A)
    b.copy_(B)
    graph.replay()
    return c
