"""Ranking: best results, means, fast_p and ties."""

from __future__ import annotations

import math
from typing import Any

import pytest

from leaderboard_app.ranking import (
    Entry,
    Estimate,
    Problem,
    Sort,
    best_entries,
    fast_curve,
    fast_p,
    geometric_mean,
    group_entries,
    rank_entries,
    rank_groups,
)


def entry(
    name: str, speedup: float | None = 2.0, noise: float = 0.01, **overrides: Any
) -> Entry:
    """A correct entry with this speedup, or one that is not correct for None."""
    values: dict[str, Any] = {
        "evaluation_id": name,
        "submission_id": name,
        "submitter": "ada",
        "agent": "",
        "language_model": "",
        "problem": Problem("softmax", "forward"),
        "title": "Softmax",
        "device": "cpu",
        "correct": speedup is not None,
    }
    if speedup is not None:
        latency = 1000 / speedup
        values["latency"] = Estimate(latency, latency * (1 - noise), latency * (1 + noise))
        values["speedups"] = {
            "best": Estimate(speedup, speedup * (1 - noise), speedup * (1 + noise))
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


def test_fast_curve_never_rises() -> None:
    """A larger p can only lower the share."""
    curve = fast_curve([Estimate.exact(s) for s in (0.5, 1.5, 3.0)], problems=3)
    assert [p for p, _ in (curve[0], curve[-1])] == pytest.approx([1 / 16, 16])
    shares = [share for _, share in curve]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[-1]) == (1.0, 0.0)


def test_best_entry_per_owner_problem_and_device() -> None:
    """A slower result and a wrong one give way; another device stands beside."""
    rows = [
        entry("slow", 1.5),
        entry("fast", 3.0),
        entry("wrong", None),
        entry("elsewhere", 1.0, device="nvidia-h200"),
    ]
    best = best_entries(rows, lambda row: row.submitter)
    assert {row.evaluation_id for row in best} == {"fast", "elsewhere"}


def test_overlapping_intervals_tie() -> None:
    """2.00 and 2.01 within 1 % share rank 1; the clearly slower row is third."""
    ranked = rank_entries([entry("c", 1.0), entry("b", 2.0), entry("a", 2.01)], Sort.SPEEDUP)
    assert [(r.row.evaluation_id, r.rank, r.tied) for r in ranked] == [
        ("a", 1, True),
        ("b", 1, True),
        ("c", 3, False),
    ]


def test_latency_ranks_the_shorter_time_first() -> None:
    """Sorting by latency is ascending."""
    ranked = rank_entries([entry("slow", 1.0), entry("fast", 4.0)], Sort.LATENCY)
    assert [(r.row.evaluation_id, r.rank) for r in ranked] == [("fast", 1), ("slow", 2)]


def test_a_row_without_the_value_comes_last_without_a_rank() -> None:
    """No work formula, no fraction of the limit, no rank by it."""
    rows = [entry("none"), entry("some", floor_fraction=0.4)]
    ranked = rank_entries(rows, Sort.FLOOR)
    assert [(r.row.evaluation_id, r.rank) for r in ranked] == [("some", 1), ("none", 0)]


def test_groups_state_coverage_and_keep_the_unsuccessful() -> None:
    """An agent with only wrong results stands with nothing solved; no agent, no group."""
    rows = [
        entry("1", 2.0, agent="x"),
        entry("2", 4.0, agent="x"),
        entry("3", None, agent="x", problem=Problem("rms_norm", "forward")),
        entry("4", None, agent="y"),
        entry("5", 9.0),
    ]
    groups = {g.owner: g for g in group_entries(rows, lambda e: e.agent, problems=4, p=1)}
    assert set(groups) == {"x", "y"}
    x = groups["x"]
    assert (x.attempted, x.problems, x.judged, x.accepted) == (2, 4, 3, 2)
    assert x.correct_share == 0.25
    assert x.fast.value == 0.25
    mean = x.speedup()
    assert mean is not None
    assert mean.value == 4.0
    assert groups["y"].speedup() is None


def test_groups_rank_by_the_share_of_problems_before_the_size_of_one_success() -> None:
    """One spectacular kernel does not outrank two good ones when sorting by fast_p."""
    rows = [
        entry("1", 30.0, agent="narrow"),
        entry("2", 2.0, agent="broad"),
        entry("3", 2.0, agent="broad", problem=Problem("rms_norm", "forward")),
    ]
    groups = group_entries(rows, lambda e: e.agent, problems=2, p=1)
    assert [r.row.owner for r in rank_groups(groups, Sort.FAST)] == ["broad", "narrow"]
    assert [r.row.owner for r in rank_groups(groups, Sort.SPEEDUP)] == ["narrow", "broad"]


def test_hidden_ratio_compares_public_with_hidden() -> None:
    """4x in public and 2x hidden is a ratio of 2."""
    assert entry("a", 4.0, hidden_speedup=2.0).hidden_ratio == 2.0
    assert entry("a", 4.0).hidden_ratio is None
