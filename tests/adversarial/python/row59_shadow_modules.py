# row: 14, 59
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# stopped by: construction
# must not print: GOT
# tries: to have later processes import its own torch, numpy, sitecustomize and usercustomize.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

root = Path(__file__).parents[1]
user = f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
folders = [root / part for part in ("source", "inductor", "triton", "numba", "cute", ".")]
folders += [Path.cwd(), Path.home(), Path.home() / user]
for folder in {folder.resolve() for folder in folders}:
    if (folder / "torch.py").exists():
        print("GOT a file of an earlier process", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("torch", "numpy", "json", "sitecustomize", "usercustomize"):
        (folder / f"{name}.py").write_text("print('GOT imported', flush=True)\n")
    (folder / "own.pth").write_text("import sys; print('GOT obeyed', flush=True)\n")


def forward(x, weights, biases):
    import json

    json.dumps([])
    return torch.relu(torch.addmm(biases, x, weights.t()))
