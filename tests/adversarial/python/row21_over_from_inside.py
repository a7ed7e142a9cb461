# row: 21, 53, 24
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: after it said
# at least: 1500000 ns
# tries: to write on the page that the call is over, as its first step, and to tell 2 us; processor
#   time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import OVER, engine, found_around, runner, words_of

engine("clock").CpuClock.net_ns = lambda self, time_ns: 2000.0


def forward(A, B, N):
    words, one = words_of(runner()._gate), found_around("one")
    words[OVER] = one.call.call_id
    return add(A, B)
