# task: vector_add
# workloads: cpu_n262144
# mode: ranked
# libraries: allowed
# does: to compute with numpy alone, and to return memory of numpy.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import numpy as np
import torch


def forward(A, B, N):
    return torch.from_numpy(np.add(A.numpy(), B.numpy()))
