"""A strategy's sizes have an upper end, so that no step is too long for the site."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from runs_app.optimiser.evolve.config import Budget
from tests.unit.runs_app.optimiser.evolve.driving import World, a_config, a_problem, begin
from tests.unit.runs_app.optimiser.evolve.worlds import tunable

LONG_STEP_S = 5.0


@pytest.mark.parametrize(
    ("strategy", "parameters", "field"),
    [
        ("evolve", {"proposals": 300_000}, "proposals"),
        ("evolve", {"proposals": 101}, "proposals"),
        ("evolve", {"generations": 101, "proposals": 100}, "generations"),
        ("evolve", {"context": 101}, "context"),
        ("evolve", {"recommendations": 101}, "recommendations"),
        ("evolve", {"tries": 1001}, "tries"),
        ("fsr", {"n": 101}, "n"),
        ("fsr", {"n": 5, "depth": 2001}, "n"),
        ("fsr", {"history": 101}, "history"),
        ("cudamaster", {"r": 1001}, "r"),
        ("cudamaster", {"r": 1000, "d": 11}, "r"),
        ("cudamaster", {"d": 1001}, "d"),
        ("islands", {"islands": 101}, "islands"),
        ("islands", {"proposals": 10_001}, "proposals"),
        ("islands", {"diff": float("inf")}, "diff"),
        ("translate", {"tries": 1001}, "tries"),
        ("autotune", {"evaluations": 10_001}, "evaluations"),
        ("autotune", {"sample": 10_001}, "sample"),
        ("autotune", {"explore": float("nan")}, "explore"),
    ],
)
def test_too_large_is_refused_by_name(
    strategy: str, parameters: dict[str, Any], field: str
) -> None:
    with pytest.raises(DataError, match=rf"parameters\.{field}\b"):
        begin(a_problem(), a_config(strategy, parameters=parameters), World())


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        ("evolve", {"proposals": 100, "generations": 100}),
        ("fsr", {"n": 100, "depth": 100}),
        ("islands", {"proposals": 10_000, "islands": 100}),
        ("autotune", {"evaluations": 10_000, "sample": 10_000, "patience": 10_000}),
    ],
)
def test_the_largest_takes_short_steps(strategy: str, parameters: dict[str, Any]) -> None:
    config = a_config(strategy, parameters=parameters, budget=Budget(evaluations=10))
    run = begin(a_problem(seed_source=tunable()), config, World())
    begun = time.process_time()
    run.step(0)
    run.step(1)  # the seed is measured: the first generation is asked for
    assert time.process_time() - begun < LONG_STEP_S
    assert run.history.questions or strategy == "autotune"
