"""What a result says of its host: typed, bounded, and open to keys of other versions."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.codec import DEEPEST, DataError, decode, decode_stored, encode
from gpu_runner.data.environment import LONGEST, Environment

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
    with pytest.raises(DataError, match=r"environment\.new: has more than 20 levels"):
        decode(Environment, {"new": deep}, "environment")
