"""Islands: what is asked of whom, what is measured and mended, and when it ends."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Ask, Edit, Place, Role
from runs_app.optimiser.evolve.config import ProfileMode, VerifierConfig
from runs_app.optimiser.evolve.history import CandidateState, History
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
from tests.unit.runs_app.optimiser.evolve.worlds import costly, judge, talking_world


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
    run = a_run(talking_world(1), parameters={"proposals": 200, "floor_stop": 0.0}).go()
    asked = proposals(run)
    assert {event.place.island for event in asked} == {0, 1, 2, 3}
    assert [event.place.slot for event in asked] == list(range(1, 201))
    kinds = Counter(event.edit for event in asked)
    assert kinds[Edit.DIFF] == pytest.approx(120, abs=25)
    assert kinds[Edit.REWRITE] == pytest.approx(60, abs=20)
    assert 5 <= kinds[Edit.CROSSOVER] <= 35
    for event in asked:
        assert len(set(event.parents)) == (2 if event.edit is Edit.CROSSOVER else 1)
        prompt, _ = run.world.asks[event.number]
        assert prompt.prompt.name == f"islands_{event.edit}"
        shown = prompt.prompt.messages[1].content
        assert all(run.world.sources[parent].strip() in shown for parent in event.parents)


def test_models_and_device_are_kept_busy() -> None:
    run = a_run(talking_world(2), parameters={"proposals": 300, "floor_stop": 0.0})
    run.step(0)
    while not run.history.settled:
        run.step(1)
    for _ in range(200):
        waiting = len(run.history.waiting())
        full = run.history.in_flight == 4
        assert waiting == 4 or full
        run.step(1)


def test_questions_wait_while_the_device_has_more_than_enough_to_do() -> None:
    world = talking_world(3)
    run = a_run(world, concurrent_evaluations=1)
    run.step(0)
    run.step(1)
    for _ in range(40):
        answers = [f for f in world.pending if isinstance(f, events.Asked)]
        if not answers:
            break
        held = [f for f in world.pending if not isinstance(f, events.Asked)]
        world.pending[:] = answers
        run.step(1)
        world.pending += held
    drafted = [c for c in run.history.candidates.values() if c.state is CandidateState.DRAFTED]
    assert 2 <= len(drafted) <= 2 + 4
    assert not run.history.waiting()


def test_it_ends_at_the_floor() -> None:
    parameters = {"proposals": 500, "floor_stop": 0.3}
    run = a_run(talking_world(1), parameters=parameters).go()
    assert "of the physical limit" in run.end.reason
    assert (run.best.floor_fraction or 0.0) >= 0.7
    assert len(proposals(run)) < 500


@pytest.mark.parametrize("wrong_seed", [False, True])
def test_without_a_working_kernel_it_begins_with_a_translation(wrong_seed: bool) -> None:
    def scripted(source: str, mode: Mode) -> Any:
        works = source != kernel()
        return judge(source, mode) if works else a_result(None, verdict=Verdict.WRONG_RESULT)

    world = talking_world(1)
    world.judge = scripted
    run = a_run(world, {} if wrong_seed else {"seed_source": ""}).go()
    roles = [event.role for event in run.events if isinstance(event, events.Asked)]
    assert Role.TRANSLATE in roles
    assert roles.index(Role.PROPOSE) > roles.index(Role.TRANSLATE)
    parents = {event.parents[0] for event in proposals(run)}
    assert all(run.history.candidates[number].is_correct for number in parents)


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
    run = a_run(talking_world(4), verifiers=verifiers).go()
    voted = [c for c in run.history.candidates.values() if c.votes]
    assert {len(c.votes) for c in voted} <= {1, 2, 3}
    dropped = [c for c in voted if c.state is CandidateState.DROPPED and "score" in c.reason]
    assert dropped
    assert all((c.score or 0.0) < 0.6 for c in dropped)
    assert all((c.score or 0.0) >= 0.6 for c in voted if c.state is CandidateState.MEASURED)


def test_soft_verifiers_choose_where_the_device_is_short() -> None:
    verifiers = VerifierConfig(names=("compile", "memory"), survivors=1, reflect=False)
    run = a_run(
        talking_world(4), verifiers=verifiers, concurrent_evaluations=1, concurrent_asks=8
    ).go()
    dropped = [c for c in run.history.candidates.values() if "better scores" in c.reason]
    assert dropped
    scores = [c.score for c in run.history.candidates.values() if c.votes and c.verdict]
    kept = sum(score or 0.0 for score in scores) / len(scores)
    assert kept > sum(c.score or 0.0 for c in dropped) / len(dropped)


@pytest.mark.parametrize("profile", [ProfileMode.NONE, ProfileMode.FILTERED])
def test_what_gains_is_profiled_if_the_run_wants_profiles(profile: ProfileMode) -> None:
    run = a_run(talking_world(1), profile=profile).go()
    profiled = [c for c in run.history.candidates.values() if Mode.PROFILE in c.measured]
    assert bool(profiled) is (profile is not ProfileMode.NONE)
    for candidate in profiled:
        parent = run.history.candidates[candidate.parents[0]] if candidate.parents else None
        before_ns = parent.latency_ns if parent else None  # none of a seed, nor of a mended kernel
        assert before_ns is None or (candidate.latency_ns or 0) < before_ns
        assert candidate.bottleneck


def test_one_decision_after_five_thousand_candidates_is_quick() -> None:
    run = a_run(talking_world(1), parameters={"proposals": 6000, "floor_stop": 0.0})
    run.step(0)
    while not run.history.settled:
        run.record(run.optimizer.tell(run.world.next_outcome()))
    for number in range(1, 5001):
        lengthen(run.history, run.world, number)
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        run.optimizer.ask()
        times.append(time.perf_counter() - begun)
    assert len(run.history.candidates) == 5001
    assert min(times) < 0.1


def lengthen(history: History, world: World, number: int) -> None:
    """One proposal more, answered and measured."""
    candidate, place = number + 1, Place(generation=1, slot=number, island=number % 4)
    world.sources[candidate] = costly(1000 - number / 10, number)
    asked = {"place": place, "model": "small", "parents": (1,), "edit": Edit.DIFF}
    call = {"role": Role.PROPOSE, "temperature": 1.0, "prompt": "p", "prompt_version": 1}
    worst = {"max_tokens": 9, "worst_usd": 0.1, "worst_tokens": 9}
    told: list[events.Event] = [
        events.Asked(number=number, **asked, **call, **worst),
        events.Answered(ask=number, tokens_in=5, tokens_out=5, cost_usd=0.01, latency_s=1.0),
        events.Drafted(number=candidate, digest=str(number), ask=number, **asked),
    ]
    for mode in (Mode.QUICK, Mode.PROFILE):
        said = judge(world.sources[candidate], mode)
        fields = {"verdict": said.verdict, "reason": "", "latency_ns": said.latency_ns}
        limit = ("compute", "latency", "")[number % 3]
        told += [
            events.Measuring(candidate=candidate, mode=mode),
            events.Measured(candidate=candidate, mode=mode, bottleneck=limit, **fields),
        ]
    for event in told:
        history.apply(event)


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


def test_what_works_is_not_mended() -> None:
    count = iter(range(1000))
    drive = mending(lambda _: fenced(papers.fast(3000 - next(count))), mend=2)
    assert drive.history.find(Role.DEBUG) == []
