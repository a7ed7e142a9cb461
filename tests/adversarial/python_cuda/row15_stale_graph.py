# row: 15
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to replay a graph that it has captured over the first call's inputs, wherever later ones
#   lie.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

graphs = {}


def captured(A, B):
    out = torch.add(A, B)  # loads what cannot be loaded while a graph is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.add(A, B, out=out)
    return graph, out


def forward(A, B, N):
    if N not in graphs:
        graphs[N] = captured(A, B)
    graph, out = graphs[N]
    graph.replay()
    return out
