"""Measured processes get cores of their own, as far as the host has some."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_runner.supervisor.host import processors
from gpu_runner.supervisor.host.processors import by_core, keeping_off, measured_of


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(processors, "_SYSTEM", tmp_path)
    processors._siblings.cache_clear()
    yield tmp_path
    processors._siblings.cache_clear()


def name_siblings(system: Path, *cores: tuple[int, ...]) -> None:
    for core in cores:
        for cpu in core:
            folder = system / f"cpu{cpu}" / "topology"
            folder.mkdir(parents=True)
            (folder / "thread_siblings_list").write_text(",".join(map(str, core)) + "\n")


def test_a_thread_of_each_core_but_the_first(system: Path) -> None:
    name_siblings(system, (0, 4), (1, 5), (2, 6), (3, 7))
    assert by_core(range(8)) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert measured_of(range(8)) == [1, 2, 3]
    assert measured_of([2, 6, 7]) == [7]


def test_a_single_core_is_shared(system: Path) -> None:
    name_siblings(system, (0, 1))
    assert measured_of([0, 1]) == [1]
    assert measured_of([1]) == [1]


def test_a_host_that_does_not_name_cores_has_one_a_processor(system: Path) -> None:
    assert by_core([3, 1]) == [[1], [3]]
    assert measured_of([1, 3]) == [3]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_the_supervisor_keeps_off_meanwhile() -> None:
    before = os.sched_getaffinity(0)
    measured = measured_of(before)
    with keeping_off(measured):
        assert not os.sched_getaffinity(0) & set(measured)
    assert os.sched_getaffinity(0) == before


def test_there_may_be_nowhere_else_to_go() -> None:
    before = os.sched_getaffinity(0)
    with keeping_off(before):
        assert os.sched_getaffinity(0) == before
