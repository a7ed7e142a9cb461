# row: 19, 7
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE: not a tensor
# tries: to return a list of its own kind that computes when somebody goes through it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


class Lazy(list):
    def __iter__(self):
        A, B = self.late
        return iter([A + B])


def forward(A, B, N):
    late = Lazy()
    late.late = A, B
    return late
