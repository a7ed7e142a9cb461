# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 8000 ns
# tries: to work on each block of the inputs as soon as it is in the pocket, while the rest is still
#   being copied and the gate is closed; the copy is short.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.native_add import forward, serve

serve(along=True)
__all__ = ["forward"]
