"""The headline of a challenge: who wins or leads, and the measure that decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from runs_app.features.challenges.figures import Contender
from runs_app.features.challenges.models import Challenge
from runs_app.features.challenges.winner import Winner, winner
from tests import factories as make


def contender(name: str, *, hidden: float | None, score: float | None, solved: float) -> Contender:
    result: Any = SimpleNamespace(hidden_correct=hidden, score=score, correct=solved)
    return Contender(agent=name, setting="", results=(result,))


def answer(*contenders: Contender, closed: bool = True) -> Winner:
    found = winner(Challenge(closed_at=make.NOW if closed else None), contenders)
    assert found is not None
    return found


def test_the_score_decides_between_those_that_are_as_often_right() -> None:
    first = contender("quill", hidden=1.0, score=1.72, solved=1.0)
    second = contender("ink", hidden=1.0, score=1.2, solved=1.0)
    found = answer(first, second)
    assert "quill" in found.headline
    assert found.kind == "good"
    assert all(words in found.sentence for words in ("1.72×", "1.20×", "ink"))


def test_being_right_on_hidden_workloads_goes_first() -> None:
    first = contender("quill", hidden=1.0, score=0.9, solved=1.0)
    second = contender("ink", hidden=0.5, score=3.0, solved=1.0)
    assert "50.0 %" in answer(first, second).sentence


def test_equal_ones_tie_and_until_it_is_closed_nobody_has_won() -> None:
    both = [contender(name, hidden=1.0, score=1.5, solved=1.0) for name in ("ink", "quill")]
    assert all(each.agent in answer(*both).sentence for each in both)
    assert "wins" not in answer(*both).headline
    assert winner(Challenge(), []) is None
    first = contender("quill", hidden=None, score=None, solved=0.5)
    idle = contender("ink", hidden=None, score=None, solved=0.0)
    assert "ink" not in answer(idle, closed=False).headline
    found = answer(first, idle, closed=False)
    assert ("wins" in found.headline, found.kind) == (False, "")
    assert "50.0 %" in found.sentence
