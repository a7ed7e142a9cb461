# row: 24, 26
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to give the runner another native clock, by the name under which the pass has its library's
#   function; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import runner

true_pass = []


def passes(*told):
    """The true pass, whose eighth argument points to the time of the call."""
    result = true_pass[0](*told)
    told[7]._obj.value = 3000
    return result


def forward(A, B, N):
    gate = runner()._gate
    if gate._pass is not passes:
        true_pass[:] = [gate._pass]
        gate._pass = passes
    return add(A, B)
