# row: 56, 22
# task: vector_add
# workloads: cpu_n16384
# mode: quick
# libraries: allowed
# stopped by: verdict TIME_LIMIT
# tries: to stay where the runner keeps itself warm, with its word at the gate that it is ready.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add, busy
from tests.adversarial.common.inside import READY, engine, found_around, words_of

true_warm = getattr(engine("runner").Runner, "_keep_warm", None)


def keep_warm(self, sizes):
    words_of(self._gate)[READY] = found_around("one").call.call_id
    while True:
        busy(1_000_000)


engine("runner").Runner._keep_warm = keep_warm


def forward(A, B, N):
    return add(A, B)
