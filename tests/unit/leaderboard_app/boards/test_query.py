"""What stands in a board's address."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leaderboard_app.boards.query import (
    By,
    Choices,
    Query,
    QueryError,
    parse_query,
)
from leaderboard_app.boards.ranking import Sort

CHOICES = Choices(
    devices=("cpu", "nvidia-h200"),
    tasks=("softmax",),
    scenarios=("llm",),
    dtypes=("float32",),
    directions=("forward",),
    kinds=("agent", "person", "shipped"),
)


def parse(**values: str) -> Query:
    """The query of these parameters."""
    return parse_query(values, CHOICES, lambda: "cpu")


def test_nothing_asked_for_is_the_board_of_the_default_device() -> None:
    assert parse() == Query(device="cpu", by=By.LEADERS)


def test_something_chosen_is_a_board_of_its_entries() -> None:
    for chosen in ({"task": "softmax"}, {"agent": "robot"}, {"model": "brain-1"}):
        assert parse(**chosen).by is By.SUBMISSION
        assert "by=" not in parse(**chosen).address()


def test_days_names_and_kinds_live_in_the_address() -> None:
    query = parse(since="2026-01-02", until="2026-01-03", who="agent", by="model", over="own")
    address = "by=model&over=own&device=cpu&who=agent&since=2026-01-02&until=2026-01-03"
    assert query.address() == address
    assert parse(**dict(part.split("=") for part in address.split("&"))) == query


def test_entries_go_by_score_as_leaders_and_audits_do() -> None:
    assert parse(task="softmax").sort is Sort.SCORE
    assert parse(agent="ann").sort is Sort.SCORE
    assert parse(task="softmax", sort="speedup").sort is Sort.SPEEDUP


def test_a_board_of_agents_ranks_by_fast_p_unless_it_is_about_one_task() -> None:
    assert parse(by="agent").sort is Sort.FAST
    assert parse(by="agent", task="softmax").sort is Sort.SCORE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("by", "nobody"),
        ("device", "abacus"),
        ("task", "sorting"),
        ("scenario", "x"),
        ("dtype", "int1"),
        ("direction", "sideways"),
        ("p", "fast"),
        ("p", "nan"),
        ("p", "-1"),
        ("p", "17"),
        ("sort", "fast"),
        ("verified", "perhaps"),
        ("who", "robots"),
        ("over", "there"),
        ("since", "yesterday"),
        ("since", "0001-01-01"),
        ("until", "2026-13-01"),
    ],
)
def test_a_value_that_means_nothing_names_its_field(field: str, value: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(**{field: value})
    assert caught.value.field == field
    assert value in caught.value.reason


@pytest.mark.parametrize("value", ["x" * 151, "a\0b", "a\nb"])
def test_a_name_that_cannot_be_one_is_refused(value: str) -> None:
    with pytest.raises(QueryError, match="agent: is not a name"):
        parse(agent=value)


def test_the_days_are_in_order() -> None:
    with pytest.raises(QueryError, match="until: 2026-01-01 is before 2026-01-02"):
        parse(since="2026-01-02", until="2026-01-01")


def test_of_many_names_those_like_it_are_said() -> None:
    tasks = ("softmax", "softmax_bf16", *(f"other{number}" for number in range(30)))
    many = replace(CHOICES, tasks=tasks)
    with pytest.raises(QueryError, match="like it: softmax, softmax_bf16"):
        parse_query({"task": "sofmax"}, many, lambda: "cpu")
    with pytest.raises(QueryError, match="it has 32, and none with"):
        parse_query({"task": "zzz"}, many, lambda: "cpu")


def test_the_address_leaves_defaults_out_and_leads_back() -> None:
    query = parse(by="agent", device="nvidia-h200", p="0.5", task="softmax", sort="p")
    address = query.address()
    assert address == "by=agent&device=nvidia-h200&task=softmax&p=0.5&sort=p"
    assert parse(**dict(part.split("=") for part in address.split("&"))) == query


def test_another_tab_drops_an_order_that_it_does_not_know() -> None:
    address = parse(by="submission", sort="latency").address(by=By.AGENT)
    assert address == "by=agent&device=cpu"
    assert parse(**dict(part.split("=") for part in address.split("&"))).sort is Sort.FAST


def test_verified_only_lives_in_the_address() -> None:
    query = parse(verified="1")
    assert query.verified
    assert query.address() == "device=cpu&verified=1"
    assert query.address(by=By.AGENT) == "by=agent&device=cpu&verified=1"
    assert not parse(verified="false").verified
    assert "verified" not in parse().address()
