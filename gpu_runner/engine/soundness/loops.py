"""Which pass of its loops a reference is in, told from where its operations are called."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import CodeType

import torch

_NOT_THE_REFERENCE = (f"{Path(torch.__file__).parent}/", f"{Path(__file__).parents[1]}/")

Place = tuple[CodeType, int]


class Loops:
    """Counts how often a reference has come back to the place from which it calls operations."""

    def __init__(self) -> None:
        """Nothing has been called."""
        self._visits: Counter[Place | None] = Counter()
        self._last: Place | None = None

    def passes(self) -> int:
        """Which visit of its place the operation that runs now is part of, from 1.

        Operations that one place calls without another in between, such as all of a backward pass
        or those of a fused operation, belong to one visit.
        """
        here = _place()
        if here != self._last or not self._visits:
            self._visits[here] += 1
            self._last = here
        return self._visits[here]


def _place() -> Place | None:
    """The innermost place in the reference; None in a thread in which none of it runs."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_REFERENCE):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code, frame.f_lasti
