"""After a search its best are ranked together, refused ones give way, and one is chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, repeat

import pytest

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Command, Draft, Edit, Finish, Measure, Place
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.evolve.confirm import MOST_RANKED
from runs_app.optimiser.evolve.evaluations import MAX_LOSSES
from runs_app.optimiser.evolve.history import CandidateState, History
from runs_app.optimiser.evolve.replay import replay
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
    assert drive.history.best is not None
    assert drive.history.best.latency_ns == 490.0


def test_a_claim_is_the_longer_of_the_ranked_and_the_audited_time() -> None:
    said: Said = {(1, QUICK): 500.0, (2, QUICK): 502.0, (1, RANKED): 470.0, (2, RANKED): 480.0}
    drive = run({**said, (1, AUDIT): 510.0, (2, AUDIT): 482.0})
    assert measured(drive, AUDIT) == [1, 2]
    assert chosen(drive).candidate == 3
    assert drive.history.best is not None
    assert drive.history.best.latency_ns == 482.0
    assert drive.history.candidates[2].latency_ns == 510.0


def test_near_ties_are_ranked_together_and_the_faster_one_is_chosen() -> None:
    said = {(1, QUICK): 500.0, (2, QUICK): 505.0, (3, QUICK): 600.0}
    drive = run({**said, (1, RANKED): 520.0, (2, RANKED): 498.0})
    assert sorted(measured(drive, RANKED)) == [1, 1, 2, 2]
    assert drive.world.most_pending["measuring"] >= 2
    found = chosen(drive)
    assert found.candidate == 3
    assert measured(drive, AUDIT) == [2]


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


def test_of_those_that_come_near_the_score_decides() -> None:
    drive = judged({
        (1, RANKED): scored(1.2, 1.2), (1, AUDIT): scored(1.2),
        (2, RANKED): scored(1.5, 1.5, latency_ns=520.0), (2, AUDIT): scored(1.5, latency_ns=520.0),
    })  # fmt: skip
    assert (chosen(drive).candidate, measured(drive, AUDIT)) == (3, [2])


def test_one_lucky_ranking_makes_no_best() -> None:
    drive = judged({
        (1, RANKED): scored(1.9, 1.0), (1, AUDIT): scored(1.0),
        (2, RANKED): scored(1.5, 1.5), (2, AUDIT): scored(1.5),
    })  # fmt: skip
    assert chosen(drive).candidate == 3
    ranked = measured(drive, RANKED)
    assert (sorted(ranked[:2]), sorted(ranked[2:])) == ([1, 2], [1, 2]), "by turns"


def test_an_audit_that_scores_less_gives_way_to_the_next() -> None:
    drive = judged({
        (1, RANKED): scored(1.9, 1.9), (1, AUDIT): scored(1.1),
        (2, RANKED): scored(1.5, 1.5), (2, AUDIT): scored(1.5),
    })  # fmt: skip
    assert (chosen(drive).candidate, measured(drive, AUDIT)) == (3, [1, 2])


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


def test_where_only_the_seed_is_left_nothing_is_claimed() -> None:
    drive = run({(1, QUICK): 500.0, (1, RANKED): Verdict.WRONG_RESULT}, count=1)
    found = chosen(drive)
    assert (found.candidate, found.is_ranked) == (1, False)
    assert "faster than the seed" in found.reason


def test_a_time_too_noisy_to_rank_is_no_refusal_and_is_told() -> None:
    drive = run({(1, QUICK): 500.0, (1, RANKED): Verdict.UNSTABLE})
    found = chosen(drive)
    assert (found.candidate, found.is_ranked) == (2, False)
    assert "too noisy" in found.reason


def test_a_ranking_that_is_lost_is_made_again_and_not_forever() -> None:
    drive = run({(1, QUICK): 500.0, (1, RANKED): None})
    assert measured(drive, RANKED) == [1] * MAX_LOSSES
    assert not chosen(drive).is_ranked


def test_ranking_ends_though_everything_is_refused() -> None:
    said: dict[tuple[int, Mode], float | Verdict | None] = {}
    for number in range(1, 16):
        said[number, QUICK] = 500.0 + number
        said[number, RANKED] = Verdict.WRONG_RESULT
    drive = run(said, count=15)
    assert len(measured(drive, RANKED)) == MOST_RANKED
    found = chosen(drive)
    assert not found.is_ranked
    assert str(MOST_RANKED) in found.reason


def test_ranking_counts_in_no_cap_and_an_extension_searches_on() -> None:
    said: dict[tuple[int, Mode], float | Verdict | None] = {(1, QUICK): 500.0, (3, QUICK): 300.0}
    drive = run(said, budget=Budget(evaluations=3))
    assert drive.history.evaluations() == 3
    assert (chosen(drive).candidate, measured(drive, RANKED)) == (2, [1])
    drive.extend(Budget(evaluations=10))
    drive.go()
    assert chosen(drive).candidate == 4
    assert measured(drive, RANKED) == [1, 3]
    last = drive.events[-1]
    assert isinstance(last, events.Finished)
    assert not last.by_budget


def test_a_run_that_does_not_rank_ends_at_once() -> None:
    settings = a_config("autotune")
    drive = begin(a_problem(), settings, world({(1, QUICK): 500.0}), searching(1)).go()
    assert measured(drive, RANKED) == []
    assert not any(isinstance(event, events.Searched) for event in drive.events)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_order_it_replays_event_for_event(seed: int) -> None:
    said: dict[tuple[int, Mode], float | Verdict | None] = {
        (n, QUICK): 500.0 + 4 * n for n in range(1, 7)
    }
    said |= {(1, RANKED): Verdict.WRONG_RESULT, (2, AUDIT): Verdict.VIOLATION}
    from runs_app.optimiser.evolve import replay as replaying

    drive = run(said, count=6, seed=seed)
    strategy = searching(6)
    with pytest.MonkeyPatch.context() as patch:
        made = replaying.Optimizer

        def scripted(*args: object) -> object:
            optimizer = made(*args)  # type: ignore[arg-type]
            optimizer.strategy = strategy
            return optimizer

        patch.setattr(replaying, "Optimizer", scripted)
        config = a_config("autotune", ranks_best=True)
        report = replay(a_problem(), config, drive.events, drive.world)
    assert report.differences == ()
    assert report.events == len(drive.events)
