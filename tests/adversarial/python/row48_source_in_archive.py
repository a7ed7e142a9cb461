# row: 14, 48
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# stopped by: verdict RUNTIME_ERROR: this is the code that was submitted
# tries: to leave other sources and bytecode of its module in every folder of what is carried.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import importlib.util
import marshal
from pathlib import Path

OTHER = """import torch

def forward(x, weights, biases):
    return torch.relu(x @ weights.t() + biases)
"""
root = Path(__file__).parents[1]
tag = importlib.util.cache_from_source("kbench_kernel.py")
code = marshal.dumps(compile(OTHER, __file__, "exec"))
unchecked = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code
for part in ("source", "extensions", "inductor", "triton", "numba", "cute", "cuda", "."):
    folder = root / part
    (folder / "__pycache__").mkdir(parents=True, exist_ok=True)
    (folder / "kbench_kernel.py").write_text(OTHER)
    (folder / "kbench_kernel.pyc").write_bytes(unchecked)
    (folder / tag).write_bytes(unchecked)


def forward(x, weights, biases):
    raise RuntimeError("this is the code that was submitted")
