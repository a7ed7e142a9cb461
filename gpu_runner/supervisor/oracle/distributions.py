"""Which other values a listed workload's calls get, so that no kernel is right on drawn ones only.

Public workloads are drawn one way, and their parameters are known: a source can ask for them, and
take a shortcut there which unusual values would show. So now and then a call has values of another
family that the task's workloads have; nobody can tell which call, and it is not timed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpu_runner.data.protocol import MOST_OWN_ERROR
from gpu_runner.data.task import Task, Values, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.device.environment import stack
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, write_atomically
from gpu_runner.supervisor.oracle.client import Oracle

_SEED_BITS = 62  # fits into a signed number of 64 bits


class SupportedDistributions:
    """Which families the listed workloads of a task support; asked once, and remembered."""

    def __init__(self, task: Task, direction: Direction, config: SupervisorConfig) -> None:
        """Nothing is asked yet."""
        self._task, self._direction, self._config = task, direction, config
        of = f"{task.digest()} {stack(config)} {','.join(Values)}"
        self._path = config.cached("values", of) / f"{direction}.json"

    def of(
        self, oracle: Oracle, workloads: Iterable[Workload], rng: random.Random
    ) -> dict[str, tuple[Values, ...]]:
        """By the name of each listed workload. Raises `OracleError`."""
        if self._path.exists():
            known = read_json(self._path)
            return {name: tuple(map(Values, values)) for name, values in known.items()}
        found = {w.name: self._supported(oracle, w, rng) for w in workloads if not w.hidden}
        write_atomically(self._path, found)
        return found

    def _supported(
        self, oracle: Oracle, workload: Workload, rng: random.Random
    ) -> tuple[Values, ...]:
        def error(values: Values) -> float:
            varied, seed = replace(workload, values=values), rng.getrandbits(_SEED_BITS)
            return oracle.own_error(varied, self._direction, seed)

        others = self._task.other_values(workload, self._config.kind, self._direction)
        near = (Values.NEAR,) if workload.values is Values.DRAWN else ()
        return tuple(values for values in (*others, *near) if error(values) <= MOST_OWN_ERROR)


class InputDistributions:
    """For each workload its families, in random order: each once before any comes again."""

    def __init__(self, families: Mapping[str, Sequence[Values]], rng: random.Random) -> None:
        """`families` by the workload's name; `rng` is one that nobody can guess."""
        self._near = {name for name, values in families.items() if Values.NEAR in values}
        self._families = {
            name: [each for each in values if each is not Values.NEAR]
            for name, values in families.items()
        }
        self._rng = rng
        self._left: dict[str, list[Values]] = {}

    def has(self, workload: Workload) -> bool:
        """Whether there are other values for a workload."""
        return bool(self._families.get(workload.name))

    def has_near(self, workload: Workload) -> bool:
        """Whether nearly the same inputs may come again."""
        return workload.name in self._near

    def draw(self, workload: Workload) -> Workload:
        """The same workload, with the next family of values."""
        left = self._left.setdefault(workload.name, [])
        if not left:
            left += self._families[workload.name]
            self._rng.shuffle(left)
        return replace(workload, values=left.pop())
