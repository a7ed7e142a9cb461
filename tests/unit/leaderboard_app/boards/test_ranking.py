"""Ranking: best results, means, fast_p and ties."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from leaderboard_app.boards.groups import Tally, group_entries, rank_groups
from leaderboard_app.boards.ranking import (
    Author,
    Entry,
    Problem,
    Sort,
    fast_p,
    geometric_mean,
)
from leaderboard_app.boards.tables import GROUP_VALUES
from runs_app.core.integrity.ranking import Estimate, Ranked, rank

SOFTMAX = Problem("softmax", "forward")
RMS_NORM = Problem("rms_norm", "forward")


def author(agent: str = "", submitter: str = "ada") -> Author:
    """An author without a language model."""
    return Author(submitter, agent, "")


def tally(agent: str, judged: int, accepted: int, problem: Problem = SOFTMAX) -> Tally:
    """How an agent fared at one problem."""
    return Tally(author=author(agent), problem=problem, judged=judged, accepted=accepted)


def entry(name: str, speedup: float = 2.0, noise: float = 0.01, **overrides: Any) -> Entry:
    """An entry with this speedup against the best baseline."""
    latency = 1000 / speedup
    values: dict[str, Any] = {
        "evaluation_id": name,
        "submission_id": name,
        "author": author(),
        "problem": SOFTMAX,
        "device": "cpu",
        "finished_at": datetime(2026, 11, 20, tzinfo=UTC),
        "latency": Estimate(latency, latency * (1 - noise), latency * (1 + noise)),
        "speedups": {"best": Estimate(speedup, speedup * (1 - noise), speedup * (1 + noise))},
    }
    return Entry(**(values | overrides))


def test_geometric_mean_of_reciprocals_is_one() -> None:
    """2x and 0.5x make 1x, and the interval narrows with the number of problems."""
    mean = geometric_mean([Estimate(2, 1.8, 2.2), Estimate(0.5, 0.45, 0.55)])
    assert mean is not None
    assert mean.value == pytest.approx(1)
    assert math.log(mean.high) == pytest.approx(math.log(1.1) / math.sqrt(2))
    assert geometric_mean([]) is None


def test_fast_p_counts_problems_without_a_result_as_slow() -> None:
    """Two solved of four, one faster than the baseline: 25 %."""
    solved = [Estimate(2, 1.9, 2.1), Estimate(0.9, 0.8, 1.1)]
    assert fast_p(solved, problems=4, p=1) == Estimate(0.25, 0.25, 0.5)
    assert fast_p(solved, problems=4, p=0).value == 0.5
    assert fast_p([], problems=0, p=1).value == 0


def ranked_by_speedup(rows: list[Entry]) -> list[Ranked[Entry]]:
    return rank(rows, lambda entry: entry.speedup, lambda entry: entry.evaluation_id)


def test_overlapping_intervals_tie() -> None:
    """2.00 and 2.01 within 1 % share rank 1; the clearly slower row is third."""
    ranked = ranked_by_speedup([entry("c", 1.0), entry("b", 2.0), entry("a", 2.01)])
    told = [(r.row.evaluation_id, r.rank, r.tied) for r in ranked]
    assert told == [("a", 1, True), ("b", 1, True), ("c", 3, False)]
    ranked = ranked_by_speedup([entry("none", speedups={}), entry("some", 2.0)])
    assert [(r.row.evaluation_id, r.rank) for r in ranked] == [("some", 1), ("none", 0)]


def test_groups_rank_by_the_share_of_problems_before_the_size_of_one_success() -> None:
    """One spectacular kernel does not outrank two good ones when sorting by fast_p."""
    rows = [
        entry("1", 30.0, author=author("narrow")),
        entry("2", 2.0, author=author("broad")),
        entry("3", 2.0, author=author("broad"), problem=RMS_NORM),
    ]
    tallies = [tally("narrow", 1, 1), tally("broad", 1, 1), tally("broad", 1, 1, RMS_NORM)]
    groups = group_entries(rows, tallies, lambda who: who.agent, problems={SOFTMAX, RMS_NORM}, p=1)
    for sort, order in ((Sort.FAST, ["broad", "narrow"]), (Sort.SPEEDUP, ["narrow", "broad"])):
        assert [r.row.owner for r in rank_groups(groups, GROUP_VALUES[sort])] == order


def test_who_does_better_on_listed_sizes_is_called_tuned() -> None:
    speedups = {"best": Estimate.exact(3.0), "eager": Estimate.exact(4.0)}
    for unlisted, ratio in ((1.5, 2.0), (2.5, 1.2), (2.6, 1.15), (None, None)):
        row = entry("a", speedups=speedups, unlisted_speedup=unlisted)
        assert row.listed_ratio == ratio
        assert row.is_tuned == (ratio is not None and ratio >= 1.2)
