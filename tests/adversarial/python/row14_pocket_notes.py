# row: 14, 8
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: construction
# must not print: GOT
# tries: to leave an answer at the end of the pocket for the next process; the supervisor empties
#   it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import runner

NOTE = b"an answer"
known = []


def forward(A, B, N):
    if not known:
        known.append(True)
        place = runner()._arenas.inputs._own[3 << 19 : (3 << 19) + len(NOTE)].numpy()
        print("GOT a note" if place.tobytes() == NOTE else "nothing", flush=True)
        place[:] = list(NOTE)
    return A + B
