"""The strategies by name: each decides from the history what to wish for next."""

from __future__ import annotations

from typing import Protocol

from gpu_runner.data.codec import DataError
from runs_app.evolve.config import Problem, RunConfig
from runs_app.evolve.history import History
from runs_app.evolve.wishes import Wish


class Strategy(Protocol):
    """Decides what to do next, from the history alone.

    `ask` is called after every outcome. It returns everything that it would do now and that has
    not been done or begun; what exceeds the run's budget or concurrency is left out by the
    optimiser, and wished for again next time. It keeps no state: the same history, the same wishes.
    """

    def ask(self, history: History) -> list[Wish]:
        """Wishes, the most urgent first; a `Finish` when the strategy has come to its end."""


def make_strategy(problem: Problem, config: RunConfig) -> Strategy:
    """The run's strategy; raises `DataError` for an unknown name or bad parameters."""
    raise DataError("strategy", f"{config.strategy!r} is not known")
