# task: softmax
# workloads: cpu_n16_c256
# mode: test
# libraries: allowed
# does: to keep its plan in a frozen dataclass, and to match on it.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Plan:
    rows: int
    columns: int

    def run(self, input):
        match self:
            case Plan(rows=1):
                return torch.softmax(input, -1)
            case Plan(rows=rows, columns=columns):
                return torch.softmax(input.view(rows, columns), 1).view(input.shape)


def forward(input, N, C):
    return Plan(N, C).run(input)
