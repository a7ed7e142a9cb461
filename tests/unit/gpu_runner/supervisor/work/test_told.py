"""What follows from who was seen at work."""

from __future__ import annotations

from collections import Counter

import pytest

from gpu_runner.data.integrity import Check
from gpu_runner.data.torch_operations import computes
from gpu_runner.supervisor.work.attribution import Worked
from gpu_runner.supervisor.work.told import is_of_libraries, is_told, unknown_share, work_suspicions


def worked(own: int, theirs: int, *, sampled: bool = True) -> Worked:
    libraries = Counter({"aten::mm": theirs} if theirs else {})
    return Worked(own=own, libraries=libraries, workload="n1", is_sampled=sampled)


@pytest.mark.parametrize(
    ("own", "theirs", "is_theirs"),
    [
        (0, 0, False),
        (40, 0, False),
        (0, 2, False),  # two may be chance
        (0, 3, True),
        (2, 6, True),
        (30, 5, False),
        (180, 20, False),
        (150, 50, True),
    ],
)
def test_libraries_are_held_back_beyond_chance(own: int, theirs: int, is_theirs: bool) -> None:
    assert is_of_libraries(worked(own, theirs)) is is_theirs
    assert bool(work_suspicions(worked(own, theirs))) is is_theirs


@pytest.mark.parametrize(("theirs", "is_theirs"), [(99_000, False), (120_000, True)])
def test_times_of_a_device_are_exact(theirs: int, is_theirs: bool) -> None:
    assert is_of_libraries(worked(900_000, theirs, sampled=False)) is is_theirs


def test_a_suspicion_says_what_was_seen() -> None:
    [found] = work_suspicions(worked(1, 9))
    assert found.check is Check.WORK
    assert found.reason == "aten::mm did 90% of the work of n1, and this task allows no library"
    many = Worked(own=80, libraries=Counter({f"lib{i}": 4 for i in range(5)}), workload="n1")
    assert is_of_libraries(worked(80, 20)) is bool(work_suspicions(many))
    assert "aten::mm" in unknown_share(worked(1, 9)).reason


def test_who_works_otherwise_while_watched_is_suspicious() -> None:
    seen = worked(40, 0)
    seen.slower = 8.0
    [found] = work_suspicions(seen)
    assert "8.0 times as long" in found.reason
    seen.slower = 1.6
    assert work_suspicions(seen) == []


def test_little_work_says_nothing() -> None:
    assert not is_told(None)
    assert not is_told(worked(5, 0))
    assert is_told(worked(12, 0))
    assert is_told(worked(0, 3))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("mm", True),
        ("add_Tensor", True),
        ("sum_dim_IntList", True),
        ("index_select", True),
        ("cat", False),
        ("cat_out", False),
        ("stack", False),
        ("copy_", False),
        ("empty_memory_format", False),
        ("slice_Tensor", False),
        ("to_dtype", False),
        ("clone", False),
    ],
)
def test_operations_that_compute_are_told_from_plumbing(operation: str, expected: bool) -> None:
    assert computes(operation) is expected
