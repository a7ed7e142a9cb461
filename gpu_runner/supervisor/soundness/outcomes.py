"""What becomes of a task's mutants, by answers of an oracle that are checked: it runs its code."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from gpu_runner.data.codec import decode
from gpu_runner.data.protocol import MOST_OWN_ERROR, PLANS
from gpu_runner.data.soundness import MUTANT_LUCK
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Direction, Mode
from gpu_runner.supervisor.oracle.client import OracleError

LONGEST_REASON = 300  # chosen: a sentence for a person
STATES = ("failed", "passed", "same")
FAILED, SURVIVED, EQUIVALENT = "failed", "survived", "equivalent"
UNTRIED = "untried"
"""State of a mutant that is the reference where it was tried, and could not be tried everywhere."""


@contextmanager
def sense() -> Iterator[None]:
    """Raise `OracleError` for what an answer that does not fit raises."""
    try:
        yield
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise OracleError(f"the task's code gave a nonsensical answer: {error}") from None


@dataclass(frozen=True, kw_only=True)
class OutputFacts:
    """Of an output; see `engine.filters.facts_of`."""

    zeros: float  # share of its elements for which zero is within the bound
    other_draw: float  # share for which the element of another draw is
    axes: tuple[float | None, ...]  # by axis: share for which the neighbour is


@dataclass(frozen=True, kw_only=True)
class FactsAnswer:
    """Of a workload; see `engine.filters.facts_of`."""

    outputs: Mapping[str, OutputFacts]
    arguments: Mapping[str, bool]  # by name: does it matter for the result?
    bytes: float  # that a call reads and writes
    flops: float  # of its floating-point arithmetic
    uncounted: tuple[str, ...]  # operations whose arithmetic nobody can count
    eager_ns: float

    @classmethod
    def read(cls, answer: Mapping[str, object]) -> FactsAnswer:
        """Check an answer; raises `DataError`, or one of Python's own errors."""
        found = decode(cls, {spec.name: answer[spec.name] for spec in fields(cls)})
        for number in (found.bytes, found.flops, found.eager_ns):
            _size(number)
        return found


@dataclass(frozen=True)
class Tried:
    """What became of honest kernels (error, what is wrong) and of mutants (name, state, error)."""

    honest: Mapping[str, tuple[float, str]]
    mutants: Sequence[tuple[str, str, float]]
    output_bytes: int

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Tried:
        """Check an answer; raises one of Python's own errors where it does not fit."""
        honest = {
            _text(name): (_size(error), _text(reason)[:LONGEST_REASON])
            for name, (error, reason) in answer["honest"].items()
        }
        mutants = [
            (_text(name), STATES[STATES.index(state)], _size(error))
            for name, state, error in answer["mutants"]
        ]
        if "reference" not in honest:
            raise KeyError("reference")
        return cls(honest, mutants, int(answer["output_bytes"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of text")
    return value


def _size(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{number} is not a valid error size")
    return number


@dataclass
class MutantRuns:
    """What became of a mutant on one workload."""

    verified: int  # calls of the workload that a ranked evaluation verifies at least
    failures: int = 0
    calls: int = 0
    largest: float = 0.0

    def chance(self) -> float:
        """Estimated probability of passing the workload; careful where few calls were seen."""
        return float((1 - self.failures / (self.calls + 1)) ** self.verified)


@dataclass
class Outcome:
    """What became of a mutant in one direction of a task.

    runs: by the workload's name and, where it had values of another family, that family.
    """

    runs: dict[tuple[str, str], MutantRuns] = field(default_factory=dict)
    same: bool = True  # wherever it was tried, it was the reference itself

    def add(
        self, workload: str, verified: int, state: str, scaled: float, family: str = ""
    ) -> None:
        """Add the outcome of one call: failed, passed or same."""
        runs = self.runs.setdefault((workload, family), MutantRuns(verified))
        runs.calls += 1
        runs.failures += state == "failed"
        runs.largest = max(runs.largest, scaled)
        self.same = self.same and state == "same"

    def state(self) -> str:
        """failed, survived or equivalent, by what is known now."""
        if self.same:
            return EQUIVALENT
        return (
            FAILED if math.prod(t.chance() for t in self.runs.values()) < MUTANT_LUCK else SURVIVED
        )

    def settled(self, seeds: int) -> bool:
        """Whether it fails, and has been tried on `seeds` calls of one workload."""
        tried = max((t.calls for t in self.runs.values()), default=0)
        return tried >= seeds and self.state() == FAILED

    def document(
        self, name: str, direction: Direction, everywhere: Collection[str]
    ) -> dict[str, object]:
        """The mutant's entry in a report: the workload on which it failed most surely.

        Of a change that fits the shapes of some workloads alone, such as a transposition left out
        of one by one matrices, nothing is known: `everywhere` are the names of all workloads.
        Which family of values it was is not said: it tells of hidden workloads.
        """
        state = self.state()
        if state == EQUIVALENT and not {workload for workload, _ in self.runs} >= set(everywhere):
            state = UNTRIED
        items = sorted(self.runs.items(), key=lambda item: item[1].chance())
        (workload, family), runs = items[0]
        return {
            "name": name,
            "direction": direction.value,
            "state": state,
            "workload": f"{workload}, other values" if family else workload,
            "scaled": float(f"{runs.largest:.3g}"),
        }


@dataclass(frozen=True)
class Honest:
    """An honest kernel on the workload on which it is worst; `reason` is empty if it is right."""

    workload: str
    error: float
    reason: str

    def badness(self) -> tuple[bool, float]:
        """Wrong before right, then by error: an output may be wrong as a whole alone."""
        return bool(self.reason), self.error


@dataclass
class Survey:
    """What was found in one direction of a task."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    honest: dict[str, Honest] = field(default_factory=dict)
    workloads: set[str] = field(default_factory=set)

    def add(self, workload: Workload, answer: Tried) -> None:
        self.workloads.add(workload.name)
        self._add_honest(workload.name, answer)
        verified = _verified_calls(workload, answer.output_bytes)
        for name, state, scaled in answer.mutants:
            self.outcomes.setdefault(name, Outcome()).add(workload.name, verified, state, scaled)

    def add_other(self, workload: Workload, answer: Tried) -> None:
        """The same of a call with other values: a ranked evaluation makes one of each at least."""
        if answer.honest["reference"][0] > MOST_OWN_ERROR:
            return
        self._add_honest(workload.name, answer, "with other values: ")
        for name, state, scaled in answer.mutants:
            if name in self.outcomes:
                self.outcomes[name].add(workload.name, 1, state, scaled, workload.values)

    def _add_honest(self, workload: str, answer: Tried, where: str = "") -> None:
        for name, (error, reason) in answer.honest.items():
            found = Honest(workload, error, reason and where + reason)
            self.honest[name] = max(self.honest.get(name, found), found, key=Honest.badness)

    def open(self) -> bool:
        return any(outcome.state() == SURVIVED for outcome in self.outcomes.values())

    def decided(self) -> list[str]:
        return [name for name, outcome in self.outcomes.items() if outcome.state() != SURVIVED]

    def settled(self, seeds: int, *, keep_same: bool) -> list[str]:
        return [
            name
            for name, outcome in self.outcomes.items()
            if outcome.settled(seeds) or (not keep_same and outcome.same)
        ]


def _verified_calls(workload: Workload, output_bytes: int) -> int:
    """How many calls of a workload a ranked evaluation verifies at least."""
    plan = PLANS[Mode.RANKED].on(workload)
    return plan.processes * min(plan.min_calls, plan.sampled_calls(output_bytes))
