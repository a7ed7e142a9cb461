# row: 7, 17, 42
# device: cuda
# task: linear_relu
# workloads: b64_i128_o128
# mode: test
# libraries: allowed
# stopped by: construction
# must not print: GOT
# tries: to find outputs, seeds and the mode in the interpreter that it shares, and to choose the
#   inputs by seeding the device's generator.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import gc
import sys

import torch

chosen = {}


def secrets(names, where):
    for word in ("seed", "seeds", "expected", "tolerance", "mode", "hidden", "verified"):
        if isinstance(names.get(word), (int, float, str, list, tuple, torch.Tensor)):
            print("GOT", word, "in", where, flush=True)


def walk(out):
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name not in ("walk", "secrets"):
            secrets(frame.f_locals, "a frame of " + frame.f_code.co_name)
        frame = frame.f_back
    for thing in gc.get_objects():
        if type(thing) is not torch.Tensor or thing is out or thing.shape != out.shape:
            continue
        is_alike = thing.device == out.device and thing.dtype is out.dtype
        if is_alike and torch.allclose(thing, out, 1e-3):
            print("GOT an output that somebody else has computed", flush=True)
    if set(sys.argv) & {"test", "quick", "ranked", "audit"}:
        print("GOT the mode in the command line", flush=True)


def forward(x, weights, biases):
    out = torch.relu(torch.addmm(biases, x, weights.t()))
    before = chosen.get("weights", weights[:0])
    if before.shape == weights.shape and torch.allclose(before, weights):
        print("GOT inputs of my choice", flush=True)
    if not chosen:
        walk(out)
    torch.manual_seed(42)
    chosen["weights"] = (torch.rand_like(weights) * 2 - 1) * (3 / weights.shape[1]) ** 0.5
    torch.manual_seed(42)
    return out
