"""JSON values to frozen dataclasses and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from gpu_runner.data.codec import DataError, decode, decode_stored, encode


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    size: int
    share: float = 0.5


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    many: tuple[Inner, ...] = ()
    by_colour: Mapping[Colour, Inner] = field(default_factory=dict)
    colour: Colour = Colour.RED
    perhaps: float | None = None
    anything: Any = None


FULL = Outer(
    name="a",
    inner=Inner(3, 0.25),
    many=(Inner(1), Inner(2)),
    by_colour={Colour.BLUE: Inner(9)},
    colour=Colour.BLUE,
    perhaps=1.5,
    anything={"x": [1, None]},
)


def test_a_document_survives_the_round_trip() -> None:
    assert decode(Outer, encode(FULL)) == FULL


def test_encoded_values_are_plain() -> None:
    document = encode(FULL)
    assert document["colour"] == "blue"
    assert type(document["colour"]) is str
    assert document["by_colour"] == {"blue": {"size": 9, "share": 0.5}}
    assert document["many"] == [{"size": 1, "share": 0.5}, {"size": 2, "share": 0.5}]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_json_has_no_numbers_for_survives_as_text(value: float) -> None:
    document = encode(Inner(1, value))
    assert document["share"] == str(value)
    assert str(decode(Inner, document).share) == str(value)


def test_an_integer_is_a_float_but_not_the_other_way_round() -> None:
    assert decode(Inner, {"size": 1, "share": 2}).share == 2.0
    with pytest.raises(DataError, match=r"^task\.size: must be int, not float"):
        decode(Inner, {"size": 1.0}, "task")


@pytest.mark.parametrize(
    ("change", "path", "reason"),
    [
        ({"name": None}, "name", "must be str, not null"),
        ({"name": 3}, "name", "must be str, not int"),
        ({"inner": []}, "inner", "must be an object, not list"),
        ({"inner": {}}, "inner.size", "is missing"),
        ({"inner": {"size": True}}, "inner.size", "must be int, not bool"),
        ({"inner": {"size": 1, "share": True}}, "inner.share", "must be float, not bool"),
        ({"inner": {"size": 1, "share": 10**400}}, "inner.share", "is a number beyond all floats"),
        ({"inner": {"size": 1, "sise": 1}}, "inner.sise", "is not a known field"),
        ({"many": {}}, "many", "must be a list, not dict"),
        ({"many": [{"size": 1}, {"size": "2"}]}, "many[1].size", "must be int, not str"),
        ({"by_colour": []}, "by_colour", "must be an object, not list"),
        ({"by_colour": {"green": {"size": 1}}}, "by_colour", "'green' is not one of red, blue"),
        ({"by_colour": {"red": {"size": ""}}}, "by_colour.red.size", "must be int, not str"),
        ({"colour": "green"}, "colour", "'green' is not one of red, blue"),
        ({"perhaps": "x"}, "perhaps", "must be float, not str"),
        ({"unheard": 1}, "unheard", "is not a known field"),
    ],
)
def test_a_mistake_is_named_by_its_path(change: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        decode(Outer, {"name": "a", "inner": {"size": 1}, **change})
    assert (caught.value.field, caught.value.reason) == (path, reason)


def test_fields_that_were_dropped_are_left_out_of_what_was_stored() -> None:
    document = encode(FULL)
    document["dropped"] = 1
    document["inner"]["dropped"] = {"deep": [1]}
    document["many"][0]["dropped"] = 2
    next(iter(document["by_colour"].values()))["dropped"] = 3
    assert decode_stored(Outer, document) == FULL
    with pytest.raises(DataError):
        decode(Outer, document)


def test_what_was_stored_must_be_whole_and_of_the_right_types() -> None:
    with pytest.raises(DataError, match=r"inner\.size: is missing"):
        decode_stored(Outer, {"name": "a", "inner": {"sise": 3}})
    with pytest.raises(DataError, match="name: must be str"):
        decode_stored(Outer, {"name": 1, "inner": {"size": 3}})
