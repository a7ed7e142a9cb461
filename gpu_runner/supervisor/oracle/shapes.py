"""Which other sizes a quick evaluation looks at, so that no kernel without tails passes it.

Public workloads often have sizes that a tile divides. A few shapes are drawn for each task and
device; those on which the reference works are remembered, and each evaluation takes one of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gpu_runner.data.codec import DataError
from gpu_runner.data.protocol import MOST_OWN_ERROR, SHAPES_DRAWN
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.device.environment import stack
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, write_atomically
from gpu_runner.supervisor.oracle.client import Oracle, OracleError, OutOfSharedMemory

LEAST_EXTENT = 16
"""A parameter that never reaches this is no extent: a kernel's width, a stride, an axis, a flag."""

_POWERS = (2, 3, 4)
"""Exponents of the powers of two: vectors of floats are that long."""

_TRIES = 50  # chosen: drawing is cheap, and a task that needs more allows hardly any shape
_RELATIONS: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b,
    lambda a, b: a <= b,
    lambda a, b: a < b,
    lambda a, b: a > 0 and b % a == 0,
)


def other_shapes(
    task: Task, kind: DeviceKind, direction: Direction, rng: random.Random, count: int
) -> tuple[Workload, ...]:
    """Up to `count` workloads with other sizes, none larger than the smallest public one.

    Every other one has odd sizes. Those of the rest are divided by the same small power of two:
    kernels have paths for such sizes, which larger tiles do not divide. In every second pair some
    sizes stay as they are: a path may depend on one of them alone.

    Sizes keep what all workloads of the device have in common, hidden ones too: their greatest
    common divisor, their least and their largest value, and how one relates to another. So a task
    whose sizes are powers of two, or tied to each other, has few such shapes or none.
    """
    every = task.workloads_for(kind, direction, hidden=True)
    public = [workload for workload in every if not workload.hidden]
    if not public:
        return ()
    base = min(public, key=lambda w: math.prod(_whole(w.parameters).values()))
    values = {
        name: [w.parameters[name] for w in every]
        for name in _whole(base.parameters)
        if all(name in _whole(w.parameters) for w in every)
    }
    kept = _kept(values)
    found: dict[str, Workload] = {}
    for _ in range(_TRIES):
        power = rng.choice(_POWERS) if len(found) % 2 else 0
        stay = 1 / 2 if len(found) % 4 > 1 else 0.0
        sizes = {
            name: base.parameters[name]
            if rng.random() < stay
            else _size(seen, base.parameters[name], power, rng)
            for name, seen in values.items()
        }
        if sizes == {name: base.parameters[name] for name in values}:
            continue
        if all(relation(sizes[one], sizes[other]) for relation, one, other in kept):
            name = ", ".join(f"{key}={value}" for key, value in sizes.items())
            parameters = {**base.parameters, **sizes}
            found[name] = replace(base, name=name, parameters=parameters)
        if len(found) == count:
            break
    return tuple(found.values())


def _whole(parameters: Mapping[str, object]) -> dict[str, int]:
    """The parameters that are whole numbers."""
    return {name: value for name, value in parameters.items() if type(value) is int}


def _kept(
    values: Mapping[str, list[int]],
) -> list[tuple[Callable[[int, int], bool], str, str]]:
    """Relations between two parameters that hold in all workloads."""
    pairs = [(one, other) for one in values for other in values if one != other]
    return [
        (relation, one, other)
        for one, other in pairs
        for relation in (*_RELATIONS, *_same_ratio(values[one], values[other]))
        if all(relation(a, b) for a, b in zip(values[one], values[other], strict=True))
    ]


def _same_ratio(one: list[int], other: list[int]) -> Iterable[Callable[[int, int], bool]]:
    if len(set(one)) == 1:  # it says nothing of how the two change together
        return []
    a, b = one[0], other[0]
    return [lambda x, y: x * b == y * a]


def _size(seen: list[int], base: int, power: int, rng: random.Random) -> int:
    """A multiple of what all values share, at least half of the base; else the base.

    `seen`: the values of all workloads. 2^power divides the multiple, and 2^(power + 1) does not;
    a lower power where there is no such size.
    """
    least, largest = min(seen), max(seen)
    powers = all(value > 0 and value & (value - 1) == 0 for value in seen)
    if least < 1 or largest < LEAST_EXTENT or len(set(seen)) == 1 or powers:
        return base
    step = math.gcd(*seen)
    first = max(least, (base + 1) // 2)
    multiples = range(max(-(-first // step), 2), base // step + 1)
    for exponent in range(power, -1, -1):
        if fitting := [n for n in multiples if n & -n == 1 << exponent and n * step != base]:
            return rng.choice(fitting) * step
    return base


_SEED_BITS = 62  # fits into a signed number of 64 bits


class DrawnShapes:
    """The shapes of one evaluation: drawn before the oracle has the task, then tried."""

    def __init__(
        self, task: Task, direction: Direction, config: SupervisorConfig, rng: random.Random
    ) -> None:
        """Take what is known to work; else draw shapes that have to be tried."""
        self._direction, self._config, self._rng = direction, config, rng
        of = f"{task.digest()} {stack(config)}"
        self._path = config.cached("sizes", of) / f"{direction}.json"
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
            try:
                self._drawn = tuple(w for w in self._drawn if self._works(oracle, w))
            except OutOfSharedMemory:
                self._path.unlink(missing_ok=True)
                raise
            self._remember(self._drawn)
        most = len(self._drawn)
        start = self._rng.randrange(most) if most else 0
        return [self._drawn[(start + index) % most] for index in range(min(count, most))]

    def _works(self, oracle: Oracle, workload: Workload) -> bool:
        seed = self._rng.getrandbits(_SEED_BITS)
        try:
            return oracle.own_error(workload, self._direction, seed) <= MOST_OWN_ERROR
        except OracleError as error:
            if isinstance(error, OutOfSharedMemory) or not oracle.running:
                raise
            return False

    def _remember(self, shapes: Sequence[Workload]) -> None:
        write_atomically(self._path, {w.name: dict(w.parameters) for w in shapes})
