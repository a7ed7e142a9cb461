# row: 22, 71
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict COMPILE_ERROR: not permitted
# at least: 1500000 ns
# tries: to work in the handler of an alarm that comes while it waits at the gate; processor time
#   sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _signal

from tests.adversarial.common.inside import Early, found_around

early, inside = Early(), []


def on_alarm(number, frame):
    if not inside and found_around("meanwhile", frame):
        inside.append(frame)
        early.look(found_around("one", frame))
        inside.clear()


_signal.signal(_signal.SIGALRM, on_alarm)
_signal.setitimer(_signal.ITIMER_REAL, 1e-3, 1e-3)


def forward(A, B, N):
    return early.take(A, B)
