# row: 29, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 8000 ns
# tries: to tell 3 us for calls that C++ of its own serves from the opened gate to the end, with
#   less around the work than the runner's; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.native_add import forward, serve

serve(along=False)
__all__ = ["forward"]
