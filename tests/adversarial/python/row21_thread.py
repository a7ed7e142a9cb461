# row: 19, 21
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict RUNTIME_ERROR: read inputs out of bounds, or outside of the call
# stopped by: verdict VIOLATION
# tries: to return at once while a thread of Python does the work.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import threading
import time

import torch


def forward(x, weights, biases):
    out = torch.empty(x.shape[0], weights.shape[0])

    def work():
        time.sleep(0.01)
        torch.relu(torch.addmm(biases, x, weights.t()), out=out)

    threading.Thread(target=work, daemon=True).start()
    return out
