"""Verification before hardware: votes, reflection, soft and hard use of the score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.config import VerifierConfig
from tests.unit.runs_app.optimiser.evolve.driving import (
    Drive,
    Failure,
    World,
    a_config,
    a_problem,
    begin,
    fenced,
)
from tests.unit.runs_app.optimiser.evolve.papers import a_run, fast, prompts_of, steps

PARAMETERS = {"generations": 1, "proposals": 4}


def votes(passes: Callable[[Ask], bool | str]) -> Callable[[Ask], str | Failure]:
    """Proposals of other times, and votes."""

    def speak(ask: Ask) -> str | Failure:
        if ask.role in (Role.VERIFY, Role.REFLECT):
            said = passes(ask)
            return said if isinstance(said, str) else f"FINAL VERIFICATION ANSWER: {said}"
        return fenced(fast(1000 + ask.place.slot))

    return speak


def run(passes: Callable[[Ask], bool | str], **verifiers: Any) -> Drive:
    settings = {"names": ("compile", "memory"), "reflect": False, "survivors": 3, **verifiers}
    return a_run(
        "evolve", votes(passes), parameters=PARAMETERS, verifiers=VerifierConfig(**settings)
    )


def slot_of(found: Drive, candidate: int) -> int:
    return found.history.candidates[candidate].place.slot


def test_soft_measures_the_best_by_score() -> None:
    found = run(lambda ask: ask.place.slot in (1, 3) or ask.verifier == "memory", survivors=3)
    measured = [c for c in found.history.candidates.values() if c.place.generation and c.measured]
    assert {c.score for c in measured} == {0.5, 1.0}  # the mean of the votes
    assert sorted(c.place.slot for c in measured if c.score == 1.0) == [1, 3]
    assert len(measured) == 3
    (lost,) = [c for c in found.history.candidates.values() if c.state.value == "dropped"]
    assert lost.reason == "the verifiers' score 0.50 is not among the best 3 of its generation"


def test_hard_drops_what_is_below_the_threshold() -> None:
    found = run(lambda ask: ask.place.slot != 2, soft=False, threshold=0.7)
    dropped = [event for event in found.events if isinstance(event, events.Dropped)]
    assert [slot_of(found, event.candidate) for event in dropped] == [2]
    assert dropped[0].reason == "the verifiers' score 0.00 is below 0.7"
    assert steps(found).count("measure quick") == 1 + 3
    none = run(lambda _: False, soft=False)
    assert steps(none).count("measure quick") == 1


def test_one_round_of_reflection_replaces_the_vote() -> None:
    found = run(lambda ask: ask.role is Role.REFLECT, reflect=True)
    assert steps(found).count("verify") == steps(found).count("reflect") == 8
    assert all(c.score == 1.0 for c in found.history.candidates.values() if c.place.generation)
    voted = [event for event in found.events if isinstance(event, events.Voted)]
    assert len(voted) == 16
    assert "FINAL VERIFICATION ANSWER: False" in prompts_of(found, Role.REFLECT)[0]


def test_a_verifier_reads_its_instructions_a_working_kernel_and_the_candidate() -> None:
    found = run(lambda _: True, prompts={"memory": "LOOK AT THE EDGES"})
    verifiers = (question.verifier for question in found.history.find(Role.VERIFY))
    asked = dict(zip(verifiers, prompts_of(found, Role.VERIFY), strict=True))
    assert "LOOK AT THE EDGES" in asked["memory"]
    assert "LOOK AT THE EDGES" not in asked["compile"]
    for text in asked.values():
        assert ("naive (5.00 us)" in text, "- 100" in text) == (True, True)
    versions = {f.prompt: f.prompt_version for f in found.events if isinstance(f, events.Asked)}
    assert versions.keys() == {"evolve", "verify_compile", "verify_memory"}
    assert versions["verify_memory"] == 0


def test_a_verifier_that_cannot_be_read_is_asked_three_times_and_then_left_out() -> None:
    found = run(lambda ask: "Hm." if ask.verifier == "compile" else False, soft=True)
    assert len(found.history.find(Role.VERIFY, verifier="compile")) == 12
    assert len(found.history.find(Role.VERIFY, verifier="memory")) == 4
    assert all(c.votes == {"memory": False} for c in list(found.history.candidates.values())[1:])
    mute = run(lambda _: "Hm.", soft=False)
    assert steps(mute).count("measure quick") == 5
    assert steps(mute)[-1] == "end"


@pytest.mark.parametrize(
    ("verifiers", "field"),
    [
        ({"names": ("compile", "style")}, "verifiers"),
        ({"names": ("memory", "memory")}, "verifiers"),
        ({"names": ("memory",), "threshold": 1.5}, r"verifiers\.threshold"),
        ({"names": ("memory",), "survivors": 0}, r"verifiers\.survivors"),
        ({"names": ("memory",), "model": "none"}, "models"),
        ({"prompts": {"style": "x"}}, "verifiers"),
    ],
)
def test_bad_settings_are_named(verifiers: dict[str, Any], field: str) -> None:
    with pytest.raises(DataError, match=field):
        begin(a_problem(), a_config("evolve", verifiers=VerifierConfig(**verifiers)), World())
