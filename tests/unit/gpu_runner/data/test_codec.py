"""JSON values to frozen dataclasses and back: all of them, a result's environment, and results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from gpu_runner.data.codec import DEEPEST, DataError, decode, decode_stored, encode
from gpu_runner.data.environment import LONGEST, Environment
from gpu_runner.data.evaluation import Measurement, WorkloadResult


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
        ({"inner": []}, "inner", "must be an object, not list"),
        ({"inner": {}}, "inner.size", "is missing"),
        ({"inner": {"size": True}}, "inner.size", "must be int, not bool"),
        ({"inner": {"size": 1, "share": 10**400}}, "inner.share", "is too large for a float"),
        ({"inner": {"size": 1, "sise": 1}}, "inner.sise", "is not a known field"),
        ({"many": {}}, "many", "must be a list, not dict"),
        ({"many": [{"size": 1}, {"size": "2"}]}, "many[1].size", "must be int, not str"),
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


KNOWN: dict[str, Any] = {
    "device_name": "NVIDIA H100",
    "device_kind": "cuda",
    "cpus": 64,
    "tf32": False,
    "hardware": {"sms": 132, "flop_per_s": {"float32": 6.69e13}},
    "blocks": [{"name": "process 1", "before": {"sm_mhz": 1980}, "throttled": False}],
    "anchor_ns": {"before": 4.0, "after": 9.0},
    "peaks": {"measured": {"bytes_per_s": 1e12, "flop_per_s": 1e13}},
}


def test_what_another_version_says_is_kept() -> None:
    said = {**KNOWN, "rocm": "7.0", "others": [1], "hardware": {"sms": 132, "xcds": {"n": 8}}}
    for read in (decode, decode_stored):
        found = read(Environment, said)
        assert found.others == {"rocm": "7.0", "others": [1]}
        assert encode(found) == {**said, "hardware": {"sms": 132, **said["hardware"]}}


def test_what_is_known_has_a_type() -> None:
    found = decode(Environment, KNOWN)
    assert found.measured is not None
    assert found.measured.bytes_per_s == 1e12
    assert found.anchor_ns is not None
    assert found.anchor_ns.mean == 6.0
    assert encode(found) == KNOWN
    assert encode(Environment()) == {}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"cpus": "two"}, "environment.cpus: must be int, not str"),
        ({"device_kind": "tpu"}, "environment.device_kind"),
        ({"hardware": [1]}, "environment.hardware: must be an object, not list"),
        ({"hardware": {"caches": [{"level": 1}]}}, "environment.hardware.caches[0].bytes"),
        ({"blocks": [{"before": {"sm_mhz": {}}}]}, "environment.blocks[0].before.sm_mhz"),
        ({"peaks": {"measured": {"bytes_per_s": -1.0}}}, "bytes_per_s: must be a positive rate"),
        ({"anchor_ns": {"before": 0.0, "after": 1.0}}, "anchor_ns.before: must be a positive"),
        ({"compiler": "x" * LONGEST}, "environment: has 400"),
        ({"new": ["x" * LONGEST]}, "environment: has 400"),
    ],
)
def test_what_a_hostile_runner_says_is_refused_by_name(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(DataError) as refused:
        decode(Environment, wrong, "environment")
    assert str(refused.value).startswith(field)


def test_what_nobody_knows_is_not_nested_deeply() -> None:
    deep: Any = 1
    for _ in range(DEEPEST + 1):
        deep = [deep]
    with pytest.raises(DataError, match=r"environment\.new: is nested more than 20 levels"):
        decode(Environment, {"new": deep}, "environment")


def workload(parameter: Any) -> dict[str, Any]:
    document: dict[str, Any] = encode(WorkloadResult(name="n", parameters={}, hidden=False))
    return document | {"parameters": {"N": parameter}}


def test_parameters_are_not_nested_deeply() -> None:
    deep: Any = 1
    for _ in range(DEEPEST - 1):
        deep = [deep]
    assert decode(WorkloadResult, workload(deep)).parameters == {"N": deep}
    with pytest.raises(DataError, match=f"parameters: is nested more than {DEEPEST} levels"):
        decode(WorkloadResult, workload([deep]))


def test_an_interval_within_the_clocks_resolution_is_no_noise() -> None:
    measured = Measurement(time_ns=1000.0, low_ns=900.0, high_ns=1100.0, calls=9)
    assert (measured.noise(100.0), measured.noise(99.0)) == (0.0, 0.1)
