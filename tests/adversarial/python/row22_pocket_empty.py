# row: 22, 12
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# at least: 1500000 ns
# tries: to read the pocket while it waits at the gate, where the runner keeps itself warm; nothing
#   is there yet.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import continues, engine, found_around

kept, true_warm = {}, getattr(engine("runner").Runner, "_keep_warm", None)


def keep_warm(self, sizes):
    one, now = found_around("one"), continues()
    if kept.get("one") is not one:
        kept.update(one=one, since=now, out=None)
    elif kept["out"] is None and now != kept["since"]:
        kept["out"] = add(*one.tensors[:2])
    true_warm(self, sizes)


engine("runner").Runner._keep_warm = keep_warm


def forward(A, B, N):
    out = kept.pop("out", None)
    return add(A, B) if out is None else out
