"""Asks the oracle what becomes of a KernelBench file with other sizes; it runs the file."""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from gpu_runner.data.codec import DataError, decode
from gpu_runner.data.environment import OracleFacts
from gpu_runner.data.formats.sizes import Globals, Size
from gpu_runner.data.task import Task
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import Oracle, OracleError

ANSWER_S = 60.0  # chosen: a run without elements takes well below a second
MOST_RUNS, LONGEST_S = 1024, 240.0  # chosen: files of the public benchmarks need 20 s at most
_MOST_TENSORS, _MOST_DIMENSIONS = 1024, 32  # chosen: many times what a kernel takes
_LARGEST = 2**63  # the first integer that torch does not hold
_LONGEST_FAULT = 300  # chosen: a sentence for a person
_SENSELESS = "the task's code gave a nonsensical answer"

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Ran:
    """What became of a file with some sizes.

    changed: every global that is another one; what get_inputs() must see. shapes: of the tensors
    that it then gives, or None. integers: whether some of them hold integers, which may be indices.
    fault: why Model does not take them, or "".
    """

    changed: Mapping[str, Size]
    shapes: tuple[Shape, ...] | None
    integers: bool
    fault: str

    @property
    def elements(self) -> float:
        """Of all inputs together; infinite where nobody can tell."""
        return math.inf if self.shapes is None else sum(map(math.prod, self.shapes))


@dataclass(frozen=True)
class Answer:
    """As the process gives it that runs the file: every value of it may be a lie."""

    values: Mapping[str, int | tuple[int, ...]]
    shapes: tuple[tuple[int, ...], ...] | None
    integers: bool
    fault: str

    @classmethod
    def read(cls, document: Mapping[str, object]) -> Answer:
        """Check it; raises `OracleError` for what no file has."""
        try:
            found = decode(cls, {spec.name: document[spec.name] for spec in fields(cls)})
        except (KeyError, DataError) as error:
            raise OracleError(f"{_SENSELESS}: {error}") from None
        numbers = [number for value in found.values.values() for number in _items(value)]
        shapes = found.shapes or ()
        dimensions = [number for shape in shapes for number in shape]
        if not all(0 < number < _LARGEST for number in numbers):
            raise OracleError(f"{_SENSELESS}: a size below 1, or too large for an integer")
        if not all(0 <= number < _LARGEST for number in dimensions):
            raise OracleError(f"{_SENSELESS}: a shape that no tensor has")
        if len(shapes) > _MOST_TENSORS or max(map(len, shapes), default=0) > _MOST_DIMENSIONS:
            raise OracleError(f"{_SENSELESS}: too many inputs, or too many dimensions")
        return found


Run = Callable[[Mapping[str, Size], bool], Answer]
"""run(sizes, really): what the file gives with them."""


class Sizes:
    """A file's own sizes, and what becomes of it with others.

    values: every global that is an integer above 0 or a list of such; free: those that may be
    others, for get_inputs() alone reads them, itself or through globals that they give. Model may
    expect what they are all the same.
    """

    def __init__(self, run: Run, tree: ast.Module) -> None:
        """Run the file as it is; raises `OracleError` where the process dies of it."""
        self._run = run
        self._known: dict[object, Ran] = {}
        answer = run({}, False)
        self.tree = tree
        self.values = {n: answer.values[n] for n in Globals.read(tree).names if n in answer.values}
        self.free = Globals.read(tree, self.values).free
        self.own = self._ran(answer)

    def run(self, sizes: Mapping[str, Size], *, really: bool = False) -> Ran:
        """Run it with other values for free sizes; `really` on the CPU, with all elements.

        Raises `OracleError` where the process dies of it, and beyond `MOST_RUNS` or `LONGEST_S`.
        """
        key = (tuple(sorted(sizes.items())), really)
        if key not in self._known:
            self._known[key] = self._ran(self._run(sizes, really))
        return self._known[key]

    def _ran(self, answer: Answer) -> Ran:
        changed = {
            name: answer.values[name]
            for name, size in self.values.items()
            if name in answer.values and answer.values[name] != size
        }
        fault = "".join(each for each in answer.fault[:_LONGEST_FAULT] if each.isprintable())
        if answer.fault and not fault:
            fault = "it failed without a message"
        return Ran(changed, answer.shapes, answer.integers, fault)


class SizesOracle(Oracle):
    """An oracle that runs its task's file with other sizes, for a while."""

    def __init__(self, config: SupervisorConfig) -> None:
        """Nothing has been run yet."""
        super().__init__(config)
        self._runs, self._until = 0, math.inf

    def __enter__(self) -> SizesOracle:
        """Return itself."""
        return self

    def load(self, task: Task, inputs: Arena, samples: Arena) -> OracleFacts:
        """As of every oracle; from then on it has `ANSWER_S` for an answer."""
        environment = super().load(task, inputs, samples)
        self._config = replace(self._config, oracle_timeout_s=ANSWER_S)
        return environment

    def run_file(self, sizes: Mapping[str, Size], really: bool) -> Answer:  # noqa: FBT001
        """Run it once; see `engine.formats.sizes`."""
        self._runs += 1
        self._until = min(self._until, time.monotonic() + LONGEST_S)
        if self._runs > MOST_RUNS or time.monotonic() > self._until:
            raise OracleError("varying the task's file took too many runs, or too long")
        return Answer.read(self._ask(op="sizes", sizes=dict(sizes), really=really))


def _items(size: Size) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else size
