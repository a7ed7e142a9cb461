"""Ranking: best results, means, fast_p and ties; and what an address asks of a board."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from leaderboard_app.boards.groups import Tally, group_entries, rank_groups
from leaderboard_app.boards.query import By, Choices, Query, QueryError, parse_query
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
    score = overrides.get("score")
    values: dict[str, Any] = {
        "evaluation_id": name,
        "submission_id": name,
        "author": author(),
        "problem": SOFTMAX,
        "device": "cpu",
        "finished_at": datetime(2026, 11, 20, tzinfo=UTC),
        "latency": Estimate(latency, latency * (1 - noise), latency * (1 + noise)),
        "merit": score.value if score else -latency,
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
    assert fast_p(solved, problems=4, p=0) == Estimate.exact(0.5)
    assert fast_p([], problems=0, p=1) is None


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


CHOICES = Choices(
    devices=("cpu", "nvidia-h200"),
    tasks={"softmax": (), "swiglu": ("forward", "backward")},
    scenarios=("llm",),
    dtypes=("float32",),
    directions=("backward", "forward"),
    kinds=("agent", "person", "shipped"),
)


def parse(**values: str) -> Query:
    """The query of these parameters."""
    return parse_query(values, CHOICES, lambda task: "cpu")


def test_nothing_asked_for_is_the_board_of_the_default_device() -> None:
    assert parse() == Query(device="cpu", by=By.LEADERS)
    for chosen in ({"task": "softmax"}, {"agent": "robot"}, {"model": "brain-1"}):
        query = parse(**chosen)  # a board of its entries, which go by the score
        assert (query.by, query.sort) == (By.SUBMISSION, Sort.SCORE)
        assert "by=" not in query.address()
    assert parse(task="softmax", sort="speedup").sort is Sort.SPEEDUP


def test_what_is_chosen_lives_in_the_address_and_defaults_do_not() -> None:
    for address in (
        "by=model&over=own&device=cpu&who=agent&since=2026-01-02&until=2026-01-03",
        "by=agent&device=nvidia-h200&task=softmax&p=0.5&sort=p",
        "device=cpu&verified=1",
    ):
        query = parse(**dict(part.split("=") for part in address.split("&")))
        assert query.address() == address
    assert query.verified
    assert query.address(by=By.AGENT) == "by=agent&device=cpu&verified=1"
    assert not parse(verified="false").verified
    assert "verified" not in parse().address()


def test_entries_of_a_task_with_two_directions_are_of_one() -> None:
    assert parse(task="softmax").direction == parse(by="agent", task="swiglu").direction == ""
    assert parse(task="swiglu").direction == "forward"
    assert parse(task="swiglu", direction="backward").direction == "backward"


def test_a_value_that_means_nothing_names_its_field() -> None:
    for field, *values in (
        ("by", "nobody"),
        ("device", "abacus"),
        ("task", "sorting"),
        ("scenario", "x"),
        ("dtype", "int1"),
        ("direction", "sideways"),
        ("p", "fast", "nan", "-1", "17"),
        ("sort", "fast"),
        ("verified", "perhaps"),
        ("who", "robots"),
        ("over", "there"),
        ("since", "yesterday", "0001-01-01"),
        ("until", "2026-13-01"),
    ):
        for value in values:
            with pytest.raises(QueryError) as caught:
                parse(**{field: value})
            assert (caught.value.field, value in caught.value.reason) == (field, True)
    with pytest.raises(QueryError, match="by: unknown by 'x'; known: leaders, matrix, "):
        parse(by="x")
    for name in ("x" * 151, "a\0b", "a\nb"):
        with pytest.raises(QueryError, match="agent: is not a name"):
            parse(agent=name)
    with pytest.raises(QueryError, match="until: 2026-01-01 is before"):
        parse(since="2026-01-02", until="2026-01-01")
