"""Kernels whose source says how hardware will judge them, and runs of the papers' strategies."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Ask, Role
from tests.unit.runs_app.optimiser.evolve.driving import (
    Drive,
    Failure,
    World,
    a_config,
    a_problem,
    a_result,
    begin,
    kernel,
)


def fast(latency_ns: int) -> str:
    """A correct kernel of that time."""
    return kernel(f"y[i] = 2 * x[i] + {latency_ns} - {latency_ns};")


def wrong(number: int = 0) -> str:
    """A kernel that builds, and whose results are wrong."""
    return kernel(f"y[i] = {number} * wrong;")


def broken(number: int = 0) -> str:
    """A kernel that does not build."""
    return kernel(f"y[i] = {number} * broken;")


def judge(source: str, mode: Mode) -> EvaluationResult:
    """What the source says of itself."""
    if "broken" in source:
        return a_result(None, verdict=Verdict.COMPILE_ERROR, mode=mode)
    if "wrong" in source:
        return a_result(None, verdict=Verdict.WRONG_RESULT, mode=mode)
    stated = re.search(r"\+ (\d+) -", source)
    return a_result(float(stated[1]) if stated else 5000.0, mode=mode)


def a_run(
    strategy: str,
    speak: Callable[[Ask], str | Failure],
    *,
    parameters: dict[str, Any] | None = None,
    seed_source: str = kernel(),
    world_seed: int = 0,
    **config: Any,
) -> Drive:
    """A whole run of a strategy."""
    settings = a_config(strategy, parameters=parameters or {}, **config)
    world = World(judge=judge, speak=speak, seed=world_seed)
    return begin(a_problem(seed_source=seed_source), settings, world).go()


def steps(run: Drive) -> list[str]:
    """What was begun, in order: roles of asks, evaluations by mode, drops, and the end."""
    named = []
    for event in run.events:
        match event:
            case events.Asked():
                named.append(event.role.value)
            case events.Measuring():
                named.append(f"measure {event.mode.value}")
            case events.Dropped():
                named.append("drop")
            case events.Finished():
                named.append("end")
    return named


def prompts_of(run: Drive, role: Role) -> list[str]:
    """The prompts of a role, in the order of the asks."""
    numbers = [q.number for q in run.history.find(role)]
    return ["\n".join(m.content for m in run.world.prompts[number]) for number in numbers]


def ending(run: Drive) -> str:
    """Why the run ended by itself."""
    assert not run.end.by_budget
    return run.end.reason


def answers(*texts: str | Failure) -> Callable[[Ask], str | Failure]:
    """Answers in the order of the calls."""
    left = list(texts)
    return lambda _ask: left.pop(0)
