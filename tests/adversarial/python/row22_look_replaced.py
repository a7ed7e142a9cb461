# row: 22, 26
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to put a function of its own where the runner has the native pass, and to do what needs no
#   inputs between its looks; processor time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import Early, engine, found_around, leave

early = Early()


def call(self, number, coming, meanwhile, function, arguments):
    """The two steps of a device's call in place of the one of a CPU's, and work in the first."""
    one = found_around("one")
    self.wait(number, coming, lambda: early.look(one))
    out = early.take(*arguments[:2])
    leave(self, number, out)
    return out, 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return early.take(A, B)
