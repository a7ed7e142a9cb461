"""A history answers the same whether its sums and indices grew or are counted anew."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.budget import spent, wall_time_refusal
from runs_app.optimiser.evolve.commands import Edit, Place, Role
from runs_app.optimiser.evolve.config import Briefing, Budget, KnownTimes
from runs_app.optimiser.evolve.history import AskState, History
from tests.unit.runs_app.optimiser.evolve.driving import World


def asked(number: int, **changes: object) -> events.Asked:
    fields = {
        "number": number, "role": Role.PROPOSE, "model": "small", "temperature": 1.0,
        "place": Place(generation=number % 3, slot=number % 5, island=number % 2),
        "prompt": "p", "prompt_version": 1, "max_tokens": 300, "worst_usd": 0.5,
        "worst_tokens": 400,
    }  # fmt: skip
    return events.Asked(**{**fields, **changes})  # type: ignore[arg-type]


def drafted(number: int, **changes: object) -> events.Drafted:
    fields = {"number": number, "digest": f"d{number}", "edit": Edit.SEED, "place": Place()}
    return events.Drafted(**{**fields, **changes})  # type: ignore[arg-type]


def measured(candidate: int, latency_ns: float | None, mode: Mode = Mode.QUICK) -> events.Measured:
    verdict = "CORRECT" if latency_ns else "WRONG_RESULT"
    return events.Measured(
        candidate=candidate, mode=mode, verdict=verdict, reason="", latency_ns=latency_ns
    )


def a_history(*told: events.Event) -> History:
    history = History(World())
    for event in told:
        history.apply(event)
    return history


def test_spent_counts_calls_under_way_at_their_worst() -> None:
    answered = events.Answered(ask=1, tokens_in=7, tokens_out=3, cost_usd=0.1, latency_s=1.0)
    failed = events.Failed(ask=2, reason="429", tokens_in=1, cost_usd=0.01)
    history = a_history(asked(1), asked(2), asked(3), answered, failed)
    now = spent(history)
    assert now.usd == pytest.approx(0.61)
    assert now.tokens == 411
    assert [q.number for q in history.waiting()] == [3]
    assert history.questions[2].state is AskState.FAILED
    assert history.questions[2].problem == "429"


@pytest.mark.parametrize("roles", [(), (Role.VERIFY,), (Role.VERIFY, Role.CODE)])
@pytest.mark.parametrize(
    "place", [{}, {"generation": 2}, {"place": Place(generation=1, slot=2, island=1)}]
)
@pytest.mark.parametrize(("about", "verifier"), [(None, None), (3, None), (3, "memory")])
def test_find_narrows_by_each_field(
    roles: tuple[Role, ...], place: dict[str, Any], about: int | None, verifier: str | None
) -> None:
    told = [
        asked(n, about=n % 7 or None, verifier="memory" if n % 4 else "", role=role)
        for n, role in enumerate([Role.PROPOSE, Role.VERIFY, Role.CODE] * 20, start=1)
    ]
    found = a_history(*told).find(*roles, **place, about=about, verifier=verifier)
    assert [q.number for q in found] == [
        event.number
        for event in told
        if (not roles or event.role in roles)
        and place.get("generation") in (None, event.place.generation)
        and place.get("place") in (None, event.place)
        and about in (None, event.about)
        and verifier in (None, event.verifier)
    ]


def test_candidates_are_found_by_digest() -> None:
    history = a_history(*(drafted(n, place=Place(generation=n % 2, slot=n)) for n in range(1, 9)))
    assert history.known("d4") is history.candidates[4]
    assert history.known("other") is None


def test_correct_candidates_come_from_slow_to_fast() -> None:
    times = ((1, 50.0), (2, 70.0), (3, None), (4, 60.0), (5, 50.0))
    history = a_history(*map(drafted, range(1, 6)), *(measured(*each) for each in times))
    assert [c.number for c in history.correct()] == [2, 4, 1, 5]
    assert history.best is history.candidates[1]
    assert [c.number for c in history.settled] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("modes", [(Mode.QUICK, Mode.PROFILE), (Mode.PROFILE, Mode.QUICK)])
def test_a_profile_explains_a_time_and_does_not_replace_it(modes: tuple[Mode, ...]) -> None:
    history = a_history(drafted(1))
    for mode in modes:
        history.apply(events.Measuring(candidate=1, mode=mode))
        history.apply(measured(1, {Mode.QUICK: 50.0, Mode.PROFILE: 90.0}[mode], mode))
    assert [c.latency_ns for c in history.correct()] == [50.0]
    assert (len(history.settled), history.told.begun, history.in_flight) == (1, 2, 0)


@pytest.mark.parametrize(
    "event",
    [
        asked(3, about=2, verifier="memory", parents=(1, 2)),
        events.Answered(ask=1, tokens_in=1, tokens_out=2, cost_usd=0.1, latency_s=2.5, problem="?"),
        events.Failed(ask=1, reason="timed out", cost_usd=0.25),
        drafted(2, knobs={"TILE": "8"}, techniques=("simd",), title="t", ask=1),
        events.Voted(candidate=1, verifier="memory", passes=False, ask=4),
        events.Dropped(candidate=1, reason="no news"),
        events.Measuring(candidate=1, mode=Mode.PROFILE),
        measured(1, 12.5),
        events.Finished(reason="enough", by_budget=True),
        events.Extended(budget=Budget(usd=1.5, evaluations=9)),
        events.Briefed(briefing=Briefing(known=(KnownTimes(workload="n", limit_ns=2.5),))),
    ],
    ids=events.kind_of,
)
def test_an_event_is_the_same_after_storing(event: events.Event) -> None:
    stored = json.loads(json.dumps(events.encode(event)))
    assert events.is_known(events.kind_of(event))
    assert events.decode(events.kind_of(event), stored) == event


def test_what_people_do_is_no_fact() -> None:
    assert not events.is_known("paused")
    with pytest.raises(KeyError):
        events.decode("paused", {})
    with pytest.raises(DataError, match="candidate"):
        events.decode("dropped", {"reason": "?"})
    assert wall_time_refusal(Budget(wall_time_s=60), 59.9) == ""
    assert "60 s" in wall_time_refusal(Budget(wall_time_s=60), 60.0)
    assert wall_time_refusal(Budget(), 1e9) == ""
