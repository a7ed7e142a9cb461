"""What an oracle answers about mutants and filters, checked: it runs the task's code."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from gpu_runner.data.codec import decode
from gpu_runner.supervisor.oracle.client import OracleError

LONGEST_REASON = 300  # chosen: a sentence for a person
STATES = ("failed", "passed", "same")


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
        raise TypeError(f"{type(value).__name__} instead of a text")
    return value


def _size(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{number} is not an error's size")
    return number
