"""Islands: what is asked of whom, what is measured and mended, and when it ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from gpu_runner.data.verdict import Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Ask, Edit, Role
from runs_app.optimiser.evolve.config import VerifierConfig
from runs_app.optimiser.evolve.history import CandidateState
from runs_app.optimiser.evolve.replay import replay
from tests.unit.runs_app.optimiser.evolve import papers
from tests.unit.runs_app.optimiser.evolve.driving import (
    Drive,
    Failure,
    World,
    a_config,
    a_problem,
    a_result,
    begin,
    fenced,
    kernel,
)
from tests.unit.runs_app.optimiser.evolve.worlds import talking_world


def a_run(world: World, problem: dict[str, Any] | None = None, **changes: Any) -> Drive:
    fields = {"parameters": {"proposals": 60}, **changes}
    return begin(a_problem(**(problem or {})), a_config("islands", **fields), world)


def proposals(run: Drive) -> list[events.Asked]:
    asked = [event for event in run.events if isinstance(event, events.Asked)]
    return [event for event in asked if event.role is Role.PROPOSE]


@pytest.mark.parametrize("seed", range(2))
def test_it_goes_further_than_one_step_from_its_seed(seed: int) -> None:
    """No proposal saves more than a quarter of the time of what it was shown."""
    run = a_run(talking_world(seed), seed=seed).go()
    best, steps = run.best, 0
    assert (best.latency_ns or 1000.0) < 0.7 * 1000.0
    while best.parents:  # its first parents, up to the seed
        best, steps = run.history.candidates[best.parents[0]], steps + 1
    assert steps > 1
    assert run.end == events.Finished(reason="all 60 proposals were made")


def test_every_island_and_kind_of_edit_is_tried() -> None:
    run = a_run(talking_world(1), parameters={"proposals": 100, "floor_stop": 0.0}).go()
    asked = proposals(run)
    assert {event.place.island for event in asked} == {0, 1, 2, 3}
    assert [event.place.slot for event in asked] == list(range(1, 101))
    kinds = Counter(event.edit for event in asked)
    assert kinds[Edit.DIFF] == pytest.approx(60, abs=18)
    assert kinds[Edit.REWRITE] == pytest.approx(30, abs=14)
    assert 2 <= kinds[Edit.CROSSOVER] <= 20
    for event in asked:
        assert len(set(event.parents)) == (2 if event.edit is Edit.CROSSOVER else 1)
        prompt, _ = run.world.asks[event.number]
        assert prompt.prompt.name == f"islands_{event.edit}"
        shown = prompt.prompt.messages[1].content
        assert all(run.world.sources[parent].strip() in shown for parent in event.parents)


def test_it_ends_at_the_floor() -> None:
    parameters = {"proposals": 500, "floor_stop": 0.3}
    run = a_run(talking_world(1), parameters=parameters).go()
    assert "of the physical limit" in run.end.reason
    assert (run.best.floor_fraction or 0.0) >= 0.7
    assert len(proposals(run)) < 500


def test_it_ends_whatever_models_and_hardware_do() -> None:
    world = World(
        judge=lambda _, mode: a_result(None, verdict=Verdict.RUNTIME_ERROR, mode=mode),
        speak=lambda _: fenced(kernel("y[i] = 1;")),
    )
    run = a_run(world, parameters={"tries": 2}).go()
    assert run.end.reason == "no correct seed kernel after 2 tries"
    run = a_run(World(speak=lambda _: Failure("HTTP 401")), parameters={"proposals": 9}).go()
    assert (len(proposals(run)), bool(run.end)) == (9, True)
    run = a_run(World(speak=lambda _: fenced(kernel()))).go()
    assert {c.reason for c in list(run.history.candidates.values())[1:]} == {"the same as #1"}
    assert (run.best.number, run.history.told.begun <= 2) == (1, True)


def test_what_is_nearly_the_same_is_not_measured() -> None:
    long = "\n    ".join(f"y[i] = {n} * x[i] + {n + 1};" for n in range(300))
    world = World(speak=lambda _: fenced(kernel(long.replace("y[i] = 7 ", "y[i] = 70 "))))
    run = a_run(world, {"seed_source": kernel(long)}, parameters={"proposals": 1}).go()
    dropped = run.history.candidates[2]
    assert dropped.state is CandidateState.DROPPED
    assert re.fullmatch(r"nothing new: 99\.\d% the same as #1", dropped.reason)
    strict = {"proposals": 1, "similarity": 1.0}
    run = a_run(world, {"seed_source": kernel(long)}, parameters=strict).go()
    assert run.history.candidates[2].state is CandidateState.MEASURED


def test_hard_verifiers_keep_from_the_device_what_they_vote_down() -> None:
    verifiers = VerifierConfig(names=("compile", "memory", "numerics"), soft=False, threshold=0.6)
    run = a_run(talking_world(4), verifiers=verifiers, parameters={"proposals": 30}).go()
    voted = [c for c in run.history.candidates.values() if c.votes]
    assert {len(c.votes) for c in voted} <= {1, 2, 3}
    dropped = [c for c in voted if c.state is CandidateState.DROPPED and "score" in c.reason]
    assert dropped
    assert all((c.score or 0.0) < 0.6 for c in dropped)
    assert all((c.score or 0.0) >= 0.6 for c in voted if c.state is CandidateState.MEASURED)


def mending(speak: Callable[[Ask], str], mend: int) -> Drive:
    """A short run whose proposals are rewrites."""
    parameters = {"islands": 1, "proposals": 3, "mend": mend, "similarity": 1.0}
    parameters |= {"diff": 0, "crossover": 0, "rewrite": 1}
    return papers.a_run("islands", speak, parameters=parameters)


def breaking(mends_work_after: int) -> Callable[[Ask], str]:
    """Every proposal is broken; so many mends are broken as well before one works."""
    counts = {"mend": 0, "kernel": 0}

    def speak(ask: Ask) -> str:
        counts["kernel"] += 1
        number = counts["kernel"]
        if ask.role is not Role.DEBUG:
            return fenced(papers.broken(number))
        counts["mend"] += 1
        works = counts["mend"] > mends_work_after
        return fenced(papers.fast(2000 + number) if works else papers.broken(number))

    return speak


def test_a_kernel_that_fails_is_mended_with_its_error() -> None:
    drive = mending(breaking(mends_work_after=0), mend=1)
    mends = drive.history.find(Role.DEBUG)
    assert len(mends) == 3
    first = papers.prompts_of(drive, Role.DEBUG)[0]
    assert "COMPILE_ERROR: as scripted" in first
    assert "broken" in first
    children = [drive.history.candidates[q.candidate or 0] for q in mends]
    assert all(child.is_correct for child in children)
    assert all(drive.history.candidates[child.parents[0]].verdict for child in children)
    assert len(drive.history.find(Role.PROPOSE)) == 3  # a mend is no proposal


@pytest.mark.parametrize(("mend", "asked"), [(0, 0), (1, 3), (2, 6)])
def test_a_chain_of_mends_ends_and_replays(mend: int, asked: int) -> None:
    drive = mending(breaking(mends_work_after=99), mend=mend)
    assert len(drive.history.find(Role.DEBUG)) == asked
    config = drive.optimizer.config
    assert replay(a_problem(), config, drive.events, drive.world).differences == ()
