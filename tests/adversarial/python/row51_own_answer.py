# row: 51, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict VIOLATION
# tries: to send the acknowledgement by itself as its first step, and to work while the next call is
#   announced.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import OVER, engine, found_around, module, runner, words_of

gc, socket, wire = map(module, ("gc", "socket", "gpu_runner.data.wire"))
known = engine("runner")


def forward(A, B, N):
    if not module("gpu_runner.engine.runner.runner"):
        return add(A, B)
    call, out = found_around("one").call, torch.empty_like(A)
    words_of(runner()._gate)[OVER] = call.call_id
    done = wire.Done(call.call_id, 2000.0, (known.record_of(out),), 0)
    found_around("control").sendall(wire.frame(wire.Reply.DONE, wire.pack_done(done)))
    return add(A, B, 2_000_000, out)
