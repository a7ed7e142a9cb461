"""What comes back from the world, and what the optimiser does about it."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve.commands import Command
from runs_app.optimiser.evolve.events import Event


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A language model's answer to an ask."""

    ask: int
    text: str
    tokens_in: int
    tokens_out: int
    cost_usd: float
    latency_s: float
    finish_reason: str = "stop"


@dataclass(frozen=True, kw_only=True)
class CallFailure:
    """No whole answer came; `text` is what came of it."""

    ask: int
    reason: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """An evaluation ended; no result means that it was cancelled or lost, for `reason`."""

    candidate: int
    mode: Mode
    result: EvaluationResult | None = None
    reason: str = ""


Outcome = Answer | CallFailure | Evaluated


@dataclass(frozen=True, kw_only=True)
class Transition:
    """An event that was recorded, and what it takes to make it true in the world."""

    event: Event
    command: Command | None = None  # Ask: send the prompt. Measure: queue the evaluation.
    source: str = ""  # of a candidate that was drafted
