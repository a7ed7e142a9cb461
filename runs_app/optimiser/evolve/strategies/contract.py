"""What a strategy is, what a form must know of it, and how its parameters are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from runs_app.optimiser.evolve.commands import Command
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.steps import Steps, commands_of

P = TypeVar("P")

MAX_STEPS = 10_000
"""Kernels that a plan may ask for: each step of a run goes through its whole plan again."""

MAX_AT_ONCE = 100
"""Kernels that may stand side by side in a plan: the prompts of all are made at once."""

MAX_TRIES = 1000
"""Kernels that may be written one after another."""


class Strategy(Protocol):
    """Decides what to do next, from the history alone.

    `ask` is called after every outcome. It returns everything that it would do now and that has
    not been done or begun; what exceeds the run's budget or concurrency is left out by the
    optimiser, and given again next time. It keeps no state: the same history, the same commands.
    """

    def ask(self, history: History) -> list[Command]:
        """Commands, the most urgent first; a `Finish` when the strategy has come to its end."""


@dataclass(frozen=True)
class Planned(Generic[P]):
    """A strategy that is one plan over `Steps`, which returns why it has come to its end."""

    problem: Problem
    config: RunConfig
    parameters: P

    def ask(self, history: History) -> list[Command]:
        """What the plan needs next."""
        return commands_of(partial(self._plan, Steps(self.problem, self.config, history)))

    def _plan(self, steps: Steps) -> str:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class StrategyInfo:
    """A strategy as people choose it.

    summary: what it does, in a sentence. parameters: a frozen dataclass, each field with a default
    and named as in the paper; help has a sentence for each. needs_seed: it cannot begin without a
    kernel. refusal: why it cannot begin with a source, empty if it can. grows: parameters of which
    an extension may ask for more. papers_classes: whether its bottleneck classes are CUDAMaster's.
    make: the strategy of a run from its problem, its config and its parameters; raises `DataError`
    for a problem that it refuses.
    """

    name: str
    title: str
    summary: str
    paper: str
    parameters: type[Any]
    help: Mapping[str, str]
    make: Callable[[Problem, RunConfig, Any], Strategy]
    needs_models: bool = True
    needs_seed: bool = False
    refusal: Callable[[str], str] | None = None
    grows: tuple[str, ...] = ()
    papers_classes: bool = False


def parameters_of(kind: type[P], config: RunConfig) -> P:
    """The strategy's parameters from the run's JSON mapping; defaults where it is silent.

    Raises `DataError` naming `parameters.<name>` for unknown names, wrong types and what the
    dataclass refuses.
    """
    return codec.decode(kind, dict(config.parameters), "parameters")


def with_defaults(info: StrategyInfo, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of the strategy as JSON values: what is given, and defaults for the rest."""
    return {**codec.encode(info.parameters()), **given}


def between(least: float, most: float, **values: float) -> None:
    """Refuse values outside, both ends being inside; raises `DataError` naming the parameter."""
    for name, value in values.items():
        if not value >= least:  # written so that it refuses NaN too
            raise DataError(f"parameters.{name}", f"must be {least:g} or more")
        if value > most:
            raise DataError(f"parameters.{name}", f"must be {most:g} or less")


def check_size(**values: int) -> None:
    """Refuse a plan of more than `MAX_STEPS` kernels, the product of the values."""
    steps = math.prod(values.values())
    if steps > MAX_STEPS:
        first, product = next(iter(values)), " times ".join(values)
        raise DataError(
            f"parameters.{first}", f"{product} is {steps}: it must be {MAX_STEPS} or less"
        )


def check_needs(info: StrategyInfo, problem: Problem, config: RunConfig) -> None:
    """Refuse a run that lacks what its strategy needs; raises `DataError`."""
    if info.needs_models and not config.writers:
        raise DataError("models", f"{info.title} needs a language model")
    if info.needs_models and not config.temperatures:
        raise DataError("temperatures", "must have one or more")
    if info.needs_seed and not problem.seed_source.strip():
        raise DataError("seed_kernel", f"{info.title} needs a seed kernel")
