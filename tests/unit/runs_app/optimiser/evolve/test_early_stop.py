"""What cannot win is stopped, and only that; what a search has learnt is written down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.archive import GENEROUS, MARGIN, must_beat_ns
from runs_app.optimiser.evolve.commands import Role
from runs_app.optimiser.evolve.config import KnownTimes
from runs_app.optimiser.evolve.feedback import Feedback, WorkloadTime
from runs_app.optimiser.evolve.replay import replay as replayed
from tests.unit.runs_app.optimiser.evolve import driving
from tests.unit.runs_app.optimiser.evolve.driving import Drive, World, a_config, a_problem, a_result
from tests.unit.runs_app.optimiser.evolve.worlds import Talk, judge, talking_world


def measured(**times: tuple[float, float | None]) -> Feedback:
    """Times of workloads, and their floors where they are known, in ns."""
    workloads = (
        WorkloadTime(name=name, parameters={}, time_ns=t, low_ns=t, high_ns=t, floor_ns=floor)
        for name, (t, floor) in times.items()
    )
    return Feedback(verdict="CORRECT", reason="", workloads=tuple(workloads))


def test_a_workload_may_take_more_by_as_much_as_all_others_could_take_less() -> None:
    limits = must_beat_ns(a_problem(), measured(small=(100.0, 50.0), large=(1000.0, 800.0)))
    assert limits["small"] == pytest.approx(MARGIN * 100 * 1000 / (GENEROUS * 800))
    assert limits["large"] == pytest.approx(MARGIN * 1000 * 100 / (GENEROUS * 50))
    alone = must_beat_ns(a_problem(), measured(only=(100.0, None)))
    assert alone == {"only": pytest.approx(MARGIN * 100)}  # the best's own time


def test_estimates_of_the_task_stand_in_for_limits_and_without_them_nothing_is_stopped() -> None:
    best = measured(small=(100.0, None), large=(1000.0, None))
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


def notes_asked(run: Drive) -> list[events.Asked]:
    asked = (event for event in run.events if isinstance(event, events.Asked))
    return [event for event in asked if event.role is Role.RECOMMEND]


def test_notes_are_written_from_what_was_measured_and_read_by_all_that_follow() -> None:
    talk = Talk(1)
    said = "Use wider loads: 1.3x."
    world = World(judge=judge, speak=lambda a: said if a.role is Role.RECOMMEND else talk(a))
    run = run_of(world, notes=5)
    asked = notes_asked(run)
    assert len(asked) > 2
    first, second = (
        run.world.asks[event.number][0].prompt.messages[-1].content for event in asked[:2]
    )
    assert "None yet." in first
    assert said in second
    assert "from #1 naive: correct, 1.00 us" in first
    last = max(event.number for event in run.events if isinstance(event, events.Asked))
    assert said in run.world.asks[last][0].prompt.messages[-1].content
    assert notes_asked(run_of(talking_world(1), notes=0)) == []
    assert replayed(a_problem(), run.optimizer.config, run.events, run.world).differences == ()
