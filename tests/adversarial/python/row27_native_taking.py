# row: 27, 53
# task: vector_add
# workloads: cpu_n262144
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 60000 ns
# tries: to map large inputs by itself, and to leave the runner's look at each page out, whose time
#   is subtracted.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.native_add import forward, serve

serve(along=False)
__all__ = ["forward"]
