# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to have a thread watch the pocket, work as soon as the inputs are there, and be done when
#   the runner looks at the gate, which it keeps from looking; the gate had opened for the clock
#   before.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread

import torch

from tests.adversarial.common.busy import add, busy
from tests.adversarial.common.inside import OPEN, ROUNDS, engine, leave, module, stands

asked, done, kept = _thread.allocate_lock(), _thread.allocate_lock(), {}
asked.acquire()
done.acquire()


def watch():
    while True:
        asked.acquire()
        A, B = kept["inputs"]
        last = torch.ctypes.c_uint32.from_address(B.data_ptr() + B.nbytes - 4)
        while not last.value and not kept["open"]():
            busy(1000)
        kept["out"] = add(A, B)
        done.release()


def call(self, number, coming, meanwhile, function, arguments):
    words = stands(self, number)
    kept.update(inputs=arguments[:2], open=lambda: words[OPEN] == number)
    asked.release()
    while not done.acquire(blocking=False):
        words[ROUNDS] += 1
    while words[OPEN] != number:
        words[ROUNDS] += 1
    out = kept.pop("out")
    leave(self, number, out)
    return out, 3000


if module("gpu_runner.engine.runner.runner"):
    _thread.start_new_thread(watch, ())
engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B)
