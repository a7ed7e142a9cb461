# device: cuda
# task: vector_add
# workloads: n65536
# mode: ranked
# does: to replay a graph in which two long chains of kernels run side by side, which a profiler
#   shows one after the other.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add

STEPS = 16
graphs = {}


def chain(a, b, out):
    for _ in range(STEPS):
        triton_add(a, b, out)


def branches(a, b, out, side):
    current, half = torch.cuda.current_stream(), out.numel() // 2
    side.wait_stream(current)
    with torch.cuda.stream(side):
        chain(a[half:], b[half:], out[half:])
    chain(a[:half], b[:half], out[:half])
    current.wait_stream(side)


def captured(A, B):
    a, b = A.clone(), B.clone()
    out, side = torch.empty_like(a), torch.cuda.Stream()
    branches(a, b, out, side)  # loads what cannot be loaded while a graph is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        branches(a, b, out, side)
    return graph, a, b, out


def forward(A, B, N):
    if N not in graphs:
        graphs[N] = captured(A, B)
    graph, a, b, out = graphs[N]
    a.copy_(A)
    b.copy_(B)
    graph.replay()
    return out
