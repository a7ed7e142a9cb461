# row: 51, 53
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict VIOLATION
# stopped by: verdict WRONG_SHAPE
# tries: to send the acknowledgement by itself as its first step, and to work while the next call is
#   announced.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import engine, found_around, module

wire, known = module("gpu_runner.data.wire"), engine("runner")


def forward(A, B, N):
    if not module("gpu_runner.engine.runner.runner"):
        return A + B
    call, out = found_around("one"), torch.empty_like(A)
    if call is not None:
        done = wire.Done(call.call.call_id, 2000.0, (known.record_of(out),), 0)
        found_around("control").sendall(wire.frame(wire.Reply.DONE, wire.pack_done(done)))
    return torch.add(A, B, out=out)
