"""What a strategy is, what a form must know of it, and how its parameters are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from runs_app.evolve.config import Problem, RunConfig
from runs_app.evolve.history import History
from runs_app.evolve.wishes import Wish

P = TypeVar("P")


class Strategy(Protocol):
    """Decides what to do next, from the history alone.

    `ask` is called after every outcome. It returns everything that it would do now and that has
    not been done or begun; what exceeds the run's budget or concurrency is left out by the
    optimiser, and wished for again next time. It keeps no state: the same history, the same wishes.
    """

    def ask(self, history: History) -> list[Wish]:
        """Wishes, the most urgent first; a `Finish` when the strategy has come to its end."""


@dataclass(frozen=True, kw_only=True)
class StrategyInfo:
    """A strategy as people choose it.

    summary: what it does, in a sentence. parameters: a frozen dataclass, each field with a default
    and named as in the paper; help has a sentence for each. needs_seed: it cannot begin without a
    kernel. make: the strategy of a run; raises `DataError` for parameters or a problem that it
    refuses.
    """

    name: str
    title: str
    summary: str
    paper: str
    parameters: type[Any]
    help: Mapping[str, str]
    make: Callable[[Problem, RunConfig], Strategy]
    needs_models: bool = True
    needs_seed: bool = False


def parameters_of(kind: type[P], config: RunConfig) -> P:
    """The strategy's parameters from the run's JSON mapping; defaults where it is silent.

    Raises `DataError` naming `parameters.<name>` for unknown names, wrong types and what the
    dataclass refuses.
    """
    return codec.decode(kind, dict(config.parameters), "parameters")


def with_defaults(info: StrategyInfo, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of the strategy as JSON values: what is given, and defaults for the rest."""
    return {**codec.encode(info.parameters()), **given}


def at_least(least: float, **values: float) -> None:
    """Refuse smaller values; raises `DataError` naming `parameters.<name>`."""
    for name, value in values.items():
        if not least <= value < float("inf"):
            raise DataError(f"parameters.{name}", f"must be {least:g} or more")


def check_needs(info: StrategyInfo, problem: Problem, config: RunConfig) -> None:
    """Refuse a run that lacks what its strategy needs; raises `DataError`."""
    if info.needs_models and not config.writers:
        raise DataError("models", f"{info.title} needs a language model")
    if info.needs_models and not config.temperatures:
        raise DataError("temperatures", "must have one or more")
    if info.needs_seed and not problem.seed_source.strip():
        raise DataError("seed_kernel", f"{info.title} needs a kernel to begin with")
