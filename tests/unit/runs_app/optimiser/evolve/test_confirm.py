"""After a search its best are ranked together, refused ones give way, and one is chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, repeat

import pytest

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve import replay as replaying
from runs_app.optimiser.evolve.commands import Command, Draft, Edit, Finish, Measure, Place
from runs_app.optimiser.evolve.config import Budget, Problem, RunConfig
from runs_app.optimiser.evolve.confirm import MOST_RANKED
from runs_app.optimiser.evolve.evaluations import MAX_LOSSES
from runs_app.optimiser.evolve.history import CandidateState, History
from runs_app.optimiser.evolve.optimizer import Optimizer
from tests.unit.runs_app.optimiser.evolve.driving import (
    Drive,
    Scripted,
    World,
    a_config,
    a_problem,
    a_result,
    begin,
    kernel,
)

Said = Mapping[tuple[int, Mode], float | Verdict | None]
QUICK, RANKED, AUDIT = Mode.QUICK, Mode.RANKED, Mode.AUDIT


def searching(count: int) -> Scripted:
    """A search that drafts the seed and `count` others, and measures each."""

    def commands(history: History) -> list[Command]:
        drafted = len(history.candidates)
        made: list[Command] = [
            Measure(candidate=c.number)
            for c in history.candidates.values()
            if c.state is CandidateState.DRAFTED
        ]
        if drafted <= count:
            edit = Edit.REWRITE if drafted else Edit.SEED
            source = kernel(f"y[i] = {drafted} + x[i];")
            made.append(Draft(source=source, edit=edit, place=Place(slot=drafted)))
        return made or [Finish(reason="all are measured")]

    return Scripted(commands)


def world(said: Said, seed: int = 0) -> World:
    """Hardware that says of candidate n in a mode what is given; of the seed 1000 ns."""

    def judge(source: str, mode: Mode) -> EvaluationResult | None:
        number = int(source.split("y[i] = ")[1].split(" ", maxsplit=1)[0])
        known = said.get((number, mode), said.get((number, QUICK), 1000.0))
        if known is None:
            return None
        if isinstance(known, Verdict):
            return a_result(None, verdict=known, mode=mode)
        return a_result(known, mode=mode, spread=0.02)

    return World(judge=judge, seed=seed)


def run(said: Said, count: int = 3, seed: int = 0, **config: object) -> Drive:
    """A whole run over those kernels. Kernel n is candidate n + 1."""
    settings = a_config("autotune", ranks_best=True, **config)
    return begin(a_problem(), settings, world(said, seed), searching(count)).go()


def measured(drive: Drive, mode: Mode) -> list[int]:
    """Kernels that were measured in a mode, in the order in which they were begun."""
    return [
        event.candidate - 1
        for event in drive.events
        if isinstance(event, events.Measuring) and event.mode is mode
    ]


def chosen(drive: Drive) -> events.Chosen:
    """What the run says at its end; it says it once, just before the end."""
    *_, one, last = drive.events
    assert isinstance(one, events.Chosen)
    assert isinstance(last, events.Finished)
    assert drive.history.best is drive.history.candidates[one.candidate]
    return one


def test_the_fastest_is_ranked_and_audited_before_the_run_ends() -> None:
    said: Said = {(1, QUICK): 500.0, (2, QUICK): 700.0, (1, RANKED): 490.0, (1, AUDIT): 480.0}
    drive = run(said)
    assert (measured(drive, RANKED), measured(drive, AUDIT)) == ([1], [1])
    found = chosen(drive)
    assert (found.candidate, found.is_ranked, found.is_audited) == (2, True, True)
    assert drive.best.latency_ns == 490.0


def test_a_claim_is_the_longer_of_the_ranked_and_the_audited_time() -> None:
    said: Said = {(1, QUICK): 500.0, (2, QUICK): 502.0, (1, RANKED): 470.0, (2, RANKED): 480.0}
    drive = run({**said, (1, AUDIT): 510.0, (2, AUDIT): 482.0})
    assert measured(drive, AUDIT) == [1, 2]
    assert chosen(drive).candidate == 3
    assert drive.best.latency_ns == 482.0
    assert drive.history.candidates[2].latency_ns == 510.0


def scored(*scores: float, latency_ns: float = 500.0) -> Iterator[EvaluationResult]:
    """Results with these scores, one after the other."""
    for value in scores:
        result = a_result(latency_ns, mode=RANKED)
        yield replace(result, speedups={"eager": value}, unlisted_speedups={"eager": value})


def judged(said: Mapping[tuple[int, Mode], Iterator[EvaluationResult]]) -> Drive:
    """A run over two kernels that are near each other when the search ends."""
    quick = world({(1, QUICK): 500.0, (2, QUICK): 520.0})

    def judge(source: str, mode: Mode) -> EvaluationResult | None:
        number = int(source.split("y[i] = ")[1].split(" ", maxsplit=1)[0])
        known = said.get((number, mode))
        return next(known) if known is not None else quick.judge(source, mode)

    settings = a_config("autotune", ranks_best=True)
    return begin(a_problem(), settings, World(judge=judge), searching(2)).go()


@pytest.mark.parametrize(
    ("first", "audited", "latency_ns", "ends"),
    [
        ((1.2, 1.2), 1.2, 520.0, (3, [2])),
        ((1.9, 1.0), 1.0, 500.0, (3, [2])),  # one lucky ranking makes no best
        ((1.9, 1.9), 1.1, 500.0, (3, [1, 2])),  # nor does one that its audit takes back
    ],
)
def test_of_those_that_come_near_the_score_decides(
    first: tuple[float, ...], audited: float, latency_ns: float, ends: tuple[int, list[int]]
) -> None:
    drive = judged({
        (1, RANKED): scored(*first), (1, AUDIT): scored(audited),
        (2, RANKED): scored(1.5, 1.5, latency_ns=latency_ns),
        (2, AUDIT): scored(1.5, latency_ns=latency_ns),
    })  # fmt: skip
    assert (chosen(drive).candidate, measured(drive, AUDIT)) == ends
    ranked = measured(drive, RANKED)
    assert (sorted(ranked[:2]), sorted(ranked[2:])) == ([1, 2], [1, 2]), "by turns"


def test_a_repetition_that_says_nothing_takes_nothing_back() -> None:
    unstable = a_result(None, verdict=Verdict.UNSTABLE, mode=RANKED)
    drive = judged({
        (1, RANKED): chain(scored(1.9), repeat(unstable)), (1, AUDIT): scored(1.9),
        (2, RANKED): scored(1.5, 1.5), (2, AUDIT): scored(1.5),
    })  # fmt: skip
    assert chosen(drive).candidate == 2
    assert len(measured(drive, RANKED)) == MOST_RANKED


@pytest.mark.parametrize("mode", [RANKED, AUDIT])
def test_the_next_takes_the_place_of_one_that_is_refused(mode: Mode) -> None:
    said: Said = {(1, QUICK): 500.0, (2, QUICK): 700.0, (1, mode): Verdict.WRONG_RESULT}
    drive = run(said)
    found = chosen(drive)
    assert (found.candidate, found.is_ranked, found.is_audited) == (3, True, True)
    refused = drive.history.candidates[2]
    assert (refused.verdict, refused.latency_ns) == (Verdict.WRONG_RESULT, None)


@pytest.mark.parametrize(
    ("verdict", "candidate", "words", "times"),
    [
        (Verdict.WRONG_RESULT, 1, "faster than the seed", 1),
        (Verdict.UNSTABLE, 2, "too noisy", None),  # is no refusal
        (None, 2, "", MAX_LOSSES),  # a lost one is made again, and not forever
    ],
)
def test_what_could_not_be_ranked_is_told(
    verdict: Verdict | None, candidate: int, words: str, times: int | None
) -> None:
    drive = run({(1, QUICK): 500.0, (1, RANKED): verdict}, count=1)
    found = chosen(drive)
    assert (found.candidate, found.is_ranked, words in found.reason) == (candidate, False, True)
    assert times is None or measured(drive, RANKED) == [1] * times


def test_ranking_ends_though_everything_is_refused() -> None:
    times: Said = {(number, QUICK): 500.0 + number for number in range(1, 16)}
    refused: Said = {(number, RANKED): Verdict.WRONG_RESULT for number in range(1, 16)}
    drive = run({**times, **refused}, count=15)
    assert len(measured(drive, RANKED)) == MOST_RANKED
    assert not chosen(drive).is_ranked
    assert str(MOST_RANKED) in chosen(drive).reason


def test_ranking_counts_in_no_cap_and_an_extension_searches_on() -> None:
    drive = run({(1, QUICK): 500.0, (3, QUICK): 300.0}, budget=Budget(evaluations=3))
    assert drive.history.told.begun == 3
    assert (chosen(drive).candidate, measured(drive, RANKED)) == (2, [1])
    drive.extend(Budget(evaluations=10))
    drive.go()
    assert chosen(drive).candidate == 4
    assert measured(drive, RANKED) == [1, 3]
    assert not drive.end.by_budget


@pytest.mark.parametrize("seed", range(2))
def test_in_any_order_it_replays_each_event(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    said: Said = {(n, QUICK): 500.0 + 4 * n for n in range(1, 7)}
    drive = run(
        {**said, (1, RANKED): Verdict.WRONG_RESULT, (2, AUDIT): Verdict.VIOLATION},
        count=6, seed=seed,
    )  # fmt: skip
    made = replaying.Optimizer

    def scripted(problem: Problem, config: RunConfig, history: History) -> Optimizer:
        optimizer = made(problem, config, history)
        optimizer.strategy = searching(6)
        return optimizer

    monkeypatch.setattr(replaying, "Optimizer", scripted)
    config = a_config("autotune", ranks_best=True)
    report = replaying.replay(a_problem(), config, drive.events, drive.world)
    assert report.differences == ()
    assert report.events == len(drive.events)
