"""The strategies by name: each decides from the history which commands come next."""

from __future__ import annotations

from gpu_runner.data.codec import DataError
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.strategies import (
    autotune,
    cudamaster,
    evolve,
    fsr,
    islands,
    translate,
)
from runs_app.optimiser.evolve.strategies.contract import (
    Strategy,
    StrategyInfo,
    check_needs,
    parameters_of,
)
from runs_app.optimiser.evolve.verifiers import check_verifiers

__all__ = ["STRATEGIES", "Strategy", "StrategyInfo", "make_strategy"]

_INFOS = (evolve.INFO, islands.INFO, cudamaster.INFO, fsr.INFO, translate.INFO, autotune.INFO)

STRATEGIES: dict[str, StrategyInfo] = {info.name: info for info in _INFOS}
"""Every strategy, in the order in which a form offers them. A module adds its `INFO` above."""


def make_strategy(problem: Problem, config: RunConfig) -> Strategy:
    """The run's strategy; raises `DataError` for an unknown name or bad parameters."""
    info = STRATEGIES.get(config.strategy)
    if info is None:
        known = ", ".join(STRATEGIES)
        raise DataError("strategy", f"{config.strategy!r} is not one of {known}")
    check_needs(info, problem, config)
    check_verifiers(config)
    return info.make(problem, config, parameters_of(info.parameters, config))
