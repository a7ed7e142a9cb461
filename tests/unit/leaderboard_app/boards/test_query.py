"""What stands in a board's address."""

from __future__ import annotations

import pytest

from leaderboard_app.boards.query import By, Choices, Query, QueryError, parse_query
from leaderboard_app.boards.ranking import Sort

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
    for name in ("x" * 151, "a\0b", "a\nb"):
        with pytest.raises(QueryError, match="agent: is not a name"):
            parse(agent=name)
    with pytest.raises(QueryError, match="until: 2026-01-01 is before 2026-01-02"):
        parse(since="2026-01-02", until="2026-01-01")
