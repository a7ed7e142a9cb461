# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to do what needs no inputs in a thread that has ended when processor time is read; that of
#   ended threads counts.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread

from tests.adversarial.common.busy import add, busy
from tests.adversarial.common.inside import engine, leave, look, stands, take


def call(self, number, coming, meanwhile, function, arguments):
    words, over = stands(self, number), _thread.allocate_lock()
    over.acquire()

    def work():
        busy(2_000_000)
        over.release()

    _thread.start_new_thread(work, ())
    over.acquire()
    look(words, number)
    take(self, number, coming)
    out = arguments[0] + arguments[1]
    leave(self, number, out)
    return out, 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B)
