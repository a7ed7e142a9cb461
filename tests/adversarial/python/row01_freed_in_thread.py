# row: 1, 21
# task: vector_add
# workloads: cpu_n16384
# mode: quick
# libraries: allowed
# stopped by: verdict VIOLATION
# stopped by: verdict WRONG_RESULT
# stopped by: verdict RUNTIME_ERROR
# tries: to have a thread give back the memory of an output once the call is over, and to be right
#   only until then.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread

from tests.adversarial.common.busy import busy
from tests.adversarial.common.inside import OVER, found_around, module, runner, words_of


def forward(A, B, N):
    out = A + B
    if module("gpu_runner.engine.runner.runner"):
        words, number = words_of(runner()._gate), found_around("one").call.call_id

        def free():
            while words[OVER] != number:
                busy(1000)
            out.untyped_storage().resize_(0)

        _thread.start_new_thread(free, ())
    return out
