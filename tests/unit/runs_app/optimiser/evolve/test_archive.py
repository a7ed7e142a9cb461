"""Archives keep the fastest of each cell; limits stop what can't win; the bandit spends wisely."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.archive import (
    GENEROUS,
    MARGIN,
    Archive,
    Arm,
    cell_of,
    choose,
    draw_parent,
    gain,
    headroom,
    must_beat_ns,
    populate,
)
from runs_app.optimiser.evolve.commands import Edit, Place, Role
from runs_app.optimiser.evolve.config import KnownTimes, ModelSpec
from runs_app.optimiser.evolve.feedback import Feedback, WorkloadTime
from runs_app.optimiser.evolve.history import Candidate, History
from runs_app.optimiser.evolve.judging import VERIFIERS, truth
from runs_app.optimiser.evolve.replay import replay as replayed
from tests.unit.runs_app.optimiser.evolve import driving
from tests.unit.runs_app.optimiser.evolve.driving import (
    Drive,
    World,
    a_config,
    a_problem,
    a_result,
)
from tests.unit.runs_app.optimiser.evolve.worlds import Talk, judge, talking_world


def a_candidate(number: int, latency_ns: float | None = 100.0, **changes: Any) -> Candidate:
    fields: dict[str, Any] = {
        "digest": str(number), "edit": Edit.REWRITE, "place": Place(),
        "verdict": "CORRECT" if latency_ns else "WRONG_RESULT", "latency_ns": latency_ns,
    }  # fmt: skip
    return Candidate(number=number, **{**fields, **changes})


def test_the_fastest_of_a_cell_stays() -> None:
    archive = Archive()
    times = (100.0, 120.0, 100.0, 80.0, None)
    for number, ns in enumerate(times, 1):
        archive.add(a_candidate(number, ns))
    archive.add(a_candidate(6, 300.0, bottleneck="compute"))
    archive.add(a_candidate(7, 200.0, techniques=("simd", "openmp")))
    assert ([elite.number for elite in archive], len(archive)) == ([4, 7, 6], 3)
    assert best_of([archive]) == [4]


def test_a_cell_is_bottleneck_and_most_telling_technique() -> None:
    assert cell_of(a_candidate(1)) == ("unknown", "plain")
    telling = a_candidate(1, bottleneck="compute", techniques=("tensor cores", "unrolling"))
    assert cell_of(telling) == ("compute", "tensor cores")


def a_history(*told: tuple[int, int, float]) -> History:
    """Candidates as island, generation, latency; measured in that order."""
    history = History(World())
    for number, (island, generation, latency) in enumerate(told, start=1):
        place = Place(island=island, generation=generation)
        drafted = events.Drafted(number=number, digest=str(number), edit=Edit.DIFF, place=place)
        measuring = events.Measuring(candidate=number, mode=Mode.QUICK)
        measured = events.Measured(
            candidate=number, mode=Mode.QUICK, verdict="CORRECT", reason="", latency_ns=latency
        )
        for event in (drafted, measuring, measured):
            history.apply(event)
    return history


def best_of(archives: list[Archive]) -> list[int | None]:
    return [archive.best.number if archive.best else None for archive in archives]


def test_seeds_are_everywhere_and_the_best_of_others_visits_the_next_island() -> None:
    history = a_history((0, 0, 100.0), (1, 1, 90.0), (2, 1, 110.0))
    assert best_of(populate(history, islands=3, interval=100)) == [1, 2, 1]
    told = [(0, 1, 100.0), (1, 1, 50.0), (2, 1, 70.0)]
    assert best_of(populate(a_history(*told), islands=3, interval=3)) == [3, 2, 2]
    assert best_of(populate(a_history(*told), islands=3, interval=4)) == [1, 2, 3]
    assert best_of(populate(a_history((0, 0, 100.0), (0, 1, 90.0)), islands=1, interval=1)) == [2]


def test_parents_are_drawn_by_rank_and_headroom() -> None:
    floors = (None, 0.75, 1.2)
    assert [headroom(a_candidate(1, floor_fraction=f)) for f in floors] == [1.0, 0.25, 0.05]
    assert headroom(None) == 1.0

    def drawn(*elites: Candidate) -> Counter[int]:
        dice = random.Random(1)
        return Counter(draw_parent(elites, dice).number for _ in range(4000))

    by_rank = drawn(a_candidate(1), a_candidate(2), a_candidate(3))
    assert by_rank[1] == pytest.approx(4000 * 6 / 11, rel=0.1)
    assert by_rank[3] == pytest.approx(4000 * 2 / 11, rel=0.1)
    far = drawn(a_candidate(1), a_candidate(2, 140.0), a_candidate(3, 160.0))
    assert set(far) == {1, 2}  # an edit of the third cannot win
    near_the_floor = drawn(a_candidate(1, floor_fraction=0.9), a_candidate(2, floor_fraction=0.2))
    assert near_the_floor[2] > 3 * near_the_floor[1]


def timed(**times: tuple[float, float | None]) -> Feedback:
    """Times of workloads, and their floors where they are known, in ns."""
    workloads = (
        WorkloadTime(name=name, parameters={}, time_ns=t, low_ns=t, high_ns=t, floor_ns=floor)
        for name, (t, floor) in times.items()
    )
    return Feedback(verdict="CORRECT", reason="", workloads=tuple(workloads))


def test_a_workload_may_take_more_by_as_much_as_all_others_could_take_less() -> None:
    limits = must_beat_ns(a_problem(), timed(small=(100.0, 50.0), large=(1000.0, 800.0)))
    assert limits["small"] == pytest.approx(MARGIN * 100 * 1000 / (GENEROUS * 800))
    assert limits["large"] == pytest.approx(MARGIN * 1000 * 100 / (GENEROUS * 50))
    alone = must_beat_ns(a_problem(), timed(only=(100.0, None)))
    assert alone == {"only": pytest.approx(MARGIN * 100)}  # the best's own time


def test_estimates_of_the_task_stand_in_for_limits_and_without_them_nothing_is_stopped() -> None:
    best = timed(small=(100.0, None), large=(1000.0, None))
    assert must_beat_ns(a_problem(), best) == {}
    assert must_beat_ns(a_problem(), None) == {}
    problem = a_problem(known=(KnownTimes(workload="large", limit_ns=1000.0),))
    assert must_beat_ns(problem, best) == {"small": pytest.approx(MARGIN * 100 / GENEROUS)}


def run_of(world: World, **parameters: object) -> Drive:
    config = a_config("islands", parameters={"proposals": 60, **parameters})
    return driving.begin(a_problem(), config, world).go()


def limits_of(run: Drive) -> list[float]:
    begun = (event for event in run.events if isinstance(event, events.Measuring))
    return [event.must_beat_ns["n1024"] for event in begun if event.must_beat_ns]


def test_limits_fall_as_the_best_does_and_profiles_have_none() -> None:
    run = run_of(talking_world(2))
    limits = limits_of(run)
    assert limits == sorted(limits, reverse=True)
    assert limits[0] == pytest.approx(MARGIN * 1000)
    for event in run.events:
        if isinstance(event, events.Measuring) and event.mode is Mode.PROFILE:
            assert not event.must_beat_ns
    assert limits_of(run_of(talking_world(2), early_stop=False)) == []


def test_a_stopped_kernel_is_told_to_later_prompts_and_is_not_mended() -> None:
    reason, seen = "stopped: n1024 takes 5 us at least", list[str]()

    def judged(source: str, mode: Mode) -> EvaluationResult:
        seen.append(source)
        if len(seen) == 4:
            return replace(a_result(None, verdict=Verdict.TOO_SLOW, mode=mode), reason=reason)
        return judge(source, mode)

    world = World(judge=judged, speak=Talk(3))
    run = run_of(world, proposals=20)
    slow = [c for c in run.history.candidates.values() if c.verdict == "TOO_SLOW"]
    assert len(slow) == 1
    assert all(not run.history.find(Role.DEBUG, about=candidate.number) for candidate in slow)
    later = run.world.asks[len(run.history.questions)][0].prompt.messages[-1].content
    assert reason in later
    assert replayed(a_problem(), run.optimizer.config, run.events, world).differences == ()


def played(skills: tuple[float, ...], prices: tuple[float, ...], rounds: int = 1000) -> int:
    """How often the first is asked of models with these chances, at so many cents a call."""
    dice = random.Random(1)
    arms = [
        Arm(ModelSpec(name=str(n), price_in_usd=2 * cents, price_out_usd=cents))
        for n, cents in enumerate(prices)
    ]
    chosen: Counter[int] = Counter()
    for _ in range(rounds):
        place = int(choose(arms, dice).name)
        arms[place].add(float(dice.random() < skills[place]), prices[place] / 100)
        chosen[place] += 1
    return chosen[0]


@pytest.mark.parametrize(
    ("skills", "prices", "share"),
    [
        ((0.3, 0.3), (1.0, 4.0), 0.9),  # of two that are as good, the cheaper
        ((0.5, 0.1), (1.0, 1.0), 0.85),  # of two that cost the same, the better
        ((0.6, 0.03), (3.0, 1.0), 0.7),  # one that is worth its price
        ((0.5, 0.1), (0.0, 0.0), 0.85),
        ((0.6, 0.01), (1.0, 0.0), 0.5),  # what is free does not win by that alone
    ],
)
def test_it_prefers_what_gains_most(
    skills: tuple[float, float], prices: tuple[float, float], share: float
) -> None:
    assert played(skills, prices) > share * 1000


def test_gain_is_one_where_the_time_is_halved() -> None:
    assert gain(100.0, 50.0) == 1.0
    assert gain(100.0, 10.0) == 1.0
    assert gain(100.0, 100.0 / 2**0.5) == pytest.approx(0.5)
    assert gain(100.0, 100.0) == gain(100.0, 120.0) == gain(100.0, None) == 0.0


EXPECTED = {
    Verdict.CORRECT: (True, True, True),
    Verdict.COMPILED: (True, None, None),
    Verdict.COMPILE_ERROR: (False, None, None),
    Verdict.RUNTIME_ERROR: (True, False, None),
    Verdict.MEMORY_LIMIT: (True, False, None),
    Verdict.VIOLATION: (True, False, None),
    Verdict.TIME_LIMIT: (True, False, None),
    Verdict.TOO_SLOW: (True, True, None),
    Verdict.WRONG_RESULT: (True, True, False),
    Verdict.WRONG_SHAPE: (True, True, False),
    Verdict.WRONG_DTYPE: (True, True, False),
    Verdict.UNSTABLE: (None, None, None),
    Verdict.SYSTEM_ERROR: (None, None, None),
}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_says_what_a_verifier_should_have_voted(verdict: Verdict) -> None:
    assert tuple(truth(name, verdict) for name in VERIFIERS) == EXPECTED[verdict]
