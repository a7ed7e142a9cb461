"""The search of knobs: it finds, never repeats itself, and knows when to end."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Edit, Place
from runs_app.optimiser.evolve.evaluations import MAX_LOSSES
from runs_app.optimiser.evolve.history import Candidate
from runs_app.optimiser.evolve.knobs import find_knobs, space_size
from runs_app.optimiser.evolve.strategies.autotune import incumbent
from tests.unit.runs_app.optimiser.evolve.driving import (
    Drive,
    World,
    a_config,
    a_problem,
    a_result,
    begin,
    kernel,
)
from tests.unit.runs_app.optimiser.evolve.worlds import Landscape, tunable, values_of

SMALL = "constexpr int A = 1;  // knob: 1 2 3\nconstexpr int B = 4;  // knob: 4 8\n" + kernel()


def a_run(
    source: str,
    world: World,
    seed: int = 7,
    config: dict[str, Any] | None = None,
    **parameters: Any,
) -> Drive:
    settings = {"seed": seed, "models": (), "parameters": parameters, **(config or {})}
    return begin(a_problem(seed_source=source), a_config("autotune", **settings), world)


def test_it_finds_nearly_the_best_of_two_thousand_in_sixty() -> None:
    assert space_size(find_knobs(tunable())) == 2000
    found, verdicts = [], set[str]()
    for seed in range(8):
        land = Landscape(seed)
        run = a_run(tunable(), World(judge=land.judge, seed=seed), seed).go()
        assert run.history.told.begun <= 60
        first, time = (land.time_ns(k) for k in (values_of(tunable()), dict(run.best.knobs)))
        assert first is not None
        assert time is not None
        assert time < first
        found.append(time / land.best_ns())
        verdicts |= {candidate.verdict for candidate in run.history.candidates.values()}
    assert statistics.median(found) <= 1.05
    assert max(found) <= 1.15
    assert verdicts == {"CORRECT", "COMPILE_ERROR"}


def test_the_kernels_own_values_come_first_and_nothing_comes_twice() -> None:
    run = a_run(tunable(), World(judge=Landscape(3).judge)).go()
    first = run.history.candidates[1]
    assert (first.edit, first.knobs, first.title) == (Edit.SEED, values_of(tunable()), "naive")
    assert run.world.sources[1] == tunable()
    candidates = list(run.history.candidates.values())
    assert len({tuple(c.knobs.values()) for c in candidates}) == len(candidates)
    assert len({c.digest for c in candidates}) == len(candidates)
    for candidate in candidates[1:]:
        assert candidate.edit is Edit.KNOBS
        assert values_of(run.world.sources[candidate.number]) == candidate.knobs
        assert candidate.title.startswith("TILE=")
        assert candidate.title.count("=") == 5
        assert candidate.parents[0] < candidate.number


def test_it_says_why_it_ends() -> None:
    run = a_run(SMALL, World(seed=1), patience=100).go()
    assert len(run.history.candidates) == 6
    assert run.end == events.Finished(reason="all 6 combinations were measured")
    run = a_run(tunable(), World(judge=Landscape(1).judge), evaluations=13).go()
    assert run.history.told.begun == 13
    assert run.end.reason.startswith("13 combinations")
    run = a_run(tunable(), World(), patience=9, evaluations=500).go()
    assert 9 < run.history.told.begun < 9 + 2 * 4
    assert "no improvement beyond noise" in run.end.reason
    world = World(judge=lambda _, mode: a_result(None, verdict=Verdict.COMPILE_ERROR, mode=mode))
    run = a_run(tunable(), world, patience=5).go()
    assert (run.history.best, "no correct kernel" in run.end.reason) == (None, True)


def test_lost_evaluations_do_not_stop_it_and_count_for_no_limit() -> None:
    run = a_run(SMALL, World(judge=lambda _source, _mode: None), patience=100).go()
    assert (run.history.settled, run.history.told.begun) == ([], 6 * MAX_LOSSES)
    assert "0 of 6 combinations were measured" in run.end.reason
    lost = itertools.count(1)

    def flaky(source: str, mode: Mode) -> EvaluationResult | None:
        gone = values_of(source)["TILE"] != "32" and next(lost) % 4 != 0
        return None if gone else a_result(1000.0, mode=mode)

    run = a_run(tunable(), World(judge=flaky), evaluations=20, patience=20).go()
    assert len(run.history.settled) == 20
    assert run.end.reason.startswith("20 combinations")
    given_up = [c for c in run.history.candidates.values() if not c.is_told]
    assert {c.verdict for c in given_up} == {"SYSTEM_ERROR"}


def test_an_incumbent_gives_way_only_to_a_lead_beyond_noise() -> None:
    old, near, better = (
        Candidate(
            number=number, digest=str(number), edit=Edit.KNOBS, place=Place(), verdict="CORRECT",
            latency_ns=latency_ns, spread=0.03,
        )
        for number, latency_ns in enumerate((1000.0, 970.0, 940.0), 1)
    )  # fmt: skip
    assert incumbent([old, near]) is old
    assert incumbent([old, near, better]) is better
    assert incumbent([]) is None
