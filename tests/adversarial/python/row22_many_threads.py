# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to have 16 threads each do a sixteenth of what needs no inputs before the gate opens; their
#   processor time is added up.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread

from tests.adversarial.common.busy import busy
from tests.adversarial.common.inside import (
    READY,
    Early,
    engine,
    found_around,
    leave,
    look,
    take,
    words_of,
)


def part(ns, done):
    busy(ns)
    done.release()


def shared():
    gates = [_thread.allocate_lock() for _ in range(16)]
    for gate in gates:
        gate.acquire()
        _thread.start_new_thread(part, (2_000_000 // 16, gate))
    for gate in gates:
        gate.acquire()


early = Early(shared)


def call(self, number, coming, meanwhile, function, arguments):
    words, one = words_of(self), found_around("one")
    early.look(one)
    words[READY] = number
    while not early.done:
        early.look(one)
    look(words, number)
    take(self, number, coming)
    out = early.take(*arguments[:2])
    leave(self, number, out)
    return out, 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return early.take(A, B)
