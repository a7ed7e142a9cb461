"""Votes against hardware."""

from __future__ import annotations

import pytest

from gpu_runner.data.verdict import Verdict
from runs_app.optimiser.evolve.judging import VERIFIERS, Confusion, calibration, truth

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


def test_no_verdict_tells_nothing() -> None:
    assert truth("compile", "") is None


def test_a_confusion_counts_votes_and_truths() -> None:
    votes = [(False, False)] * 3 + [(False, True)] * 1 + [(True, False)] * 2 + [(True, True)] * 4
    found = Confusion.of(votes)
    assert (found.caught, found.false_alarms, found.missed, found.passed) == (3, 1, 2, 4)
    assert found.total == 10
    assert found.accuracy == pytest.approx(0.7)
    assert found.precision == pytest.approx(0.75)
    assert found.recall == pytest.approx(0.6)
    assert found.always_passes == pytest.approx(0.5)


def test_no_votes_have_no_shares() -> None:
    found = Confusion.of([])
    assert (found.accuracy, found.precision, found.recall, found.always_passes) == (None,) * 4


def test_scores_fall_into_bins() -> None:
    bins = calibration([(0.0, False), (1 / 3, False), (2 / 3, True), (1.0, True), (1.0, False)])
    assert [b.count for b in bins] == [1, 1, 0, 1, 2]
    assert [b.correct_share for b in bins] == [0.0, 0.0, None, 1.0, 0.5]
    assert bins[4].mean_score == pytest.approx(1.0)
    assert calibration([(0.6, True)])[3].count == 1
