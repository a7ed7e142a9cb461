"""Measured processes get cores of their own, as far as the host has some."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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


@pytest.mark.parametrize(
    ("cores", "processors", "grouped", "measured"),
    [
        ([(0, 4), (1, 5), (2, 6), (3, 7)], range(8), [[0, 4], [1, 5], [2, 6], [3, 7]], [1, 2, 3]),
        ([(0, 4), (1, 5), (2, 6), (3, 7)], [2, 6, 7], [[2, 6], [7]], [7]),
        ([(0, 1)], [0, 1], [[0, 1]], [1]),  # a single core is shared
        ([(0, 1)], [1], [[1]], [1]),
        ([], [3, 1], [[1], [3]], [3]),  # a host that does not name cores has one a processor
    ],
)
def test_a_thread_of_each_core_but_the_first(
    system: Path,
    cores: list[tuple[int, ...]],
    processors: Sequence[int],
    grouped: list[list[int]],
    measured: list[int],
) -> None:
    name_siblings(system, *cores)
    assert by_core(processors) == grouped
    assert measured_of(processors) == measured


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_the_supervisor_keeps_off_meanwhile() -> None:
    before = os.sched_getaffinity(0)
    measured = measured_of(before)
    with keeping_off(measured):
        assert not os.sched_getaffinity(0) & set(measured)
    assert os.sched_getaffinity(0) == before
    with keeping_off(before):  # there may be nowhere else to go
        assert os.sched_getaffinity(0) == before
