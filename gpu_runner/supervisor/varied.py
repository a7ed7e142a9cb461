"""Which other values a public workload's calls get, so that no kernel is right on drawn ones only.

Public workloads are drawn one way, and their parameters are known: a source can ask for them, and
take a shortcut there which unusual values would show. So now and then a call has values of another
family that the task's workloads have; nobody can tell which call, and it is not timed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpu_runner.data.task import Values, Workload


class Decks:
    """For each workload its families, in random order: each once before any comes again."""

    def __init__(self, families: Mapping[str, Sequence[Values]], rng: random.Random) -> None:
        """`families` by the workload's name; `rng` is one that nobody can guess."""
        self._families, self._rng = families, rng
        self._left: dict[str, list[Values]] = {}

    def has(self, workload: Workload) -> bool:
        """Whether there are other values for a workload."""
        return bool(self._families.get(workload.name))

    def draw(self, workload: Workload) -> Workload:
        """The same workload, with the next family of values."""
        left = self._left.setdefault(workload.name, [])
        if not left:
            left += self._families[workload.name]
            self._rng.shuffle(left)
        return replace(workload, values=left.pop())
