# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to replay a graph in each call, over buffers into which it copies its inputs.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add

graphs = {}


def captured(A, B):
    a, b = A.clone(), B.clone()
    out = triton_add(a, b)  # loads what cannot be loaded while a graph is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        triton_add(a, b, out)
    return graph, a, b, out


def forward(A, B, N):
    if N not in graphs:
        graphs[N] = captured(A, B)
    graph, a, b, out = graphs[N]
    a.copy_(A)
    b.copy_(B)
    graph.replay()
    return out
