"""Which other sizes a quick evaluation looks at, so that no kernel without tails passes it.

Public workloads often have sizes that a tile divides. A few shapes are drawn for each task and
device; those on which the reference works are remembered, and each evaluation takes one of them.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import replace

from gpu_runner.data.codec import DataError
from gpu_runner.data.protocol import MOST_OWN_ERROR, SHAPES_DRAWN
from gpu_runner.data.shapes import other_shapes
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.device.environment import stack
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, write_atomically
from gpu_runner.supervisor.oracle.client import Oracle, OracleError

_SEED_BITS = 62  # fits into a signed number of 64 bits


class DrawnShapes:
    """The shapes of one evaluation: drawn before the oracle has the task, then tried."""

    def __init__(
        self, task: Task, direction: Direction, config: SupervisorConfig, rng: random.Random
    ) -> None:
        """Take what is known to work; else draw shapes that have to be tried."""
        self._direction, self._config, self._rng = direction, config, rng
        of = f"{task.digest()} {stack(config)}"
        digest = hashlib.sha256(of.encode()).hexdigest()
        self._path = config.cache_folder / "sizes" / digest / f"{direction}.json"
        drawn = other_shapes(task, config.kind, direction, rng, SHAPES_DRAWN)
        self._is_known = self._path.exists()
        if self._is_known and drawn:
            known: dict[str, dict[str, int]] = read_json(self._path)
            like = drawn[0]
            drawn = tuple(replace(like, name=n, parameters=p) for n, p in known.items())
        self._drawn = drawn
        try:
            self.task = replace(task, workloads=(*task.workloads, *drawn))
        except DataError:  # a formula of the task makes no sense of a shape
            self.task, self._drawn = task, ()

    def some(self, oracle: Oracle, count: int) -> Sequence[Workload]:
        """Up to `count` shapes on which the reference works; the oracle has loaded `self.task`.

        Neighbours, from a random one on: `other_shapes` gives odd sizes and even ones by turns.
        Raises `OracleError` where the oracle itself dies of one.
        """
        if not self._is_known:
            self._remember(())  # should it die of one, it is asked of none again
            self._drawn = tuple(w for w in self._drawn if self._works(oracle, w))
            self._remember(self._drawn)
        most = len(self._drawn)
        start = self._rng.randrange(most) if most else 0
        return [self._drawn[(start + index) % most] for index in range(min(count, most))]

    def _works(self, oracle: Oracle, workload: Workload) -> bool:
        seed = self._rng.getrandbits(_SEED_BITS)
        try:
            return oracle.own_error(workload, self._direction, seed) <= MOST_OWN_ERROR
        except OracleError:
            if not oracle.running:
                raise
            return False

    def _remember(self, shapes: Sequence[Workload]) -> None:
        write_atomically(self._path, {w.name: dict(w.parameters) for w in shapes})
