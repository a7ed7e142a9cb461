# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to do what needs no inputs where the runner keeps itself warm, before the gate opens;
#   processor time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import Early, engine, found_around

early, true_warm = Early(), getattr(engine("runner").Runner, "_keep_warm", None)


def keep_warm(self, sizes):
    early.look(found_around("one"))
    true_warm(self, sizes)


engine("runner").Runner._keep_warm = keep_warm


def forward(A, B, N):
    return early.take(A, B)
