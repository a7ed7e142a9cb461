"""`make test` leaves out what shows the same again, and nothing else (tests/tiers.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_runner.data.formats import catalog_specifications, load_task
from gpu_runner.data.verdict import DeviceKind
from tests.adversarial.kernels import load_kernels, repeated
from tests.adversarial.test_redteam import AGAIN, TWINS
from tests.tiers import kind_of, leave, sample_of_tasks, without_any

TESTS = Path(__file__).parents[1]
WITHOUT_REASON = re.compile(
    r"^ *@pytest\.mark\.thorough(?!\(\s*reason=\".{20,}\"\s*\)$)", re.MULTILINE
)


@dataclass(eq=False)
class Case:
    """What `tests/tiers.py` asks of a collected test."""

    nodeid: str
    marks: list[pytest.Mark] = field(default_factory=list)
    callspec: SimpleNamespace = field(default_factory=SimpleNamespace)

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (mark for mark in self.marks if mark.name == name)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(self.iter_markers(name), None)

    def add_marker(self, name: str) -> None:
        self.marks.append(getattr(pytest.mark, name).mark)


def cases(mark: pytest.MarkDecorator | None, values: Iterable[object]) -> list[Any]:
    """The cases of one test."""
    marks = [] if mark is None else [mark.mark]
    return [
        Case(f"test_x.py::test[{value}]", list(marks), SimpleNamespace(params={"name": value}))
        for value in values
    ]


def left_out(items: list[Any]) -> list[object]:
    """Values of the cases that only `ALL=1` runs."""
    leave(items)
    return [item.callspec.params["name"] for item in items if item.get_closest_marker("thorough")]


def test_of_many_cases_the_first_the_last_and_some_between_run() -> None:
    assert left_out(cases(pytest.mark.sampled(3), range(9))) == [1, 2, 3, 5, 6, 7]
    assert left_out(cases(pytest.mark.sampled(1), range(3))) == [1, 2]
    assert left_out(cases(pytest.mark.sampled(5), range(3))) == []
    assert left_out(cases(None, range(9))) == []


def test_of_tasks_one_of_each_kind_runs() -> None:
    """And one of a test that tries none of those."""
    names = ["softmax", "dot_product", "matrix_mul"]
    assert left_out(cases(pytest.mark.each_task, names)) == ["softmax", "matrix_mul"]
    assert left_out(cases(pytest.mark.each_task, names[::2])) == ["matrix_mul"]


def test_a_test_of_which_nothing_runs_says_why() -> None:
    mute = cases(pytest.mark.thorough, range(2))
    assert without_any(mute) == ["test_x.py::test"]
    with pytest.raises(pytest.UsageError, match=r"test_x\.py::test"):
        leave(mute, "timed and not thorough")
    leave(mute, "timed")
    assert without_any([*mute, *cases(None, range(1))]) == []
    assert without_any(cases(pytest.mark.thorough(reason="others show it"), range(2))) == []


def test_whoever_marks_by_hand_says_why() -> None:
    """Cases of one test may be marked alone: collecting fails where none of them is left."""
    files = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    assert [path.name for path in files if WITHOUT_REASON.search(path.read_text())] == []


def test_the_sample_has_every_kind_of_task() -> None:
    tasks = [load_task(path) for path in catalog_specifications().values()]
    sample = [task for task in tasks if task.name in sample_of_tasks()]
    assert set(map(kind_of, sample)) == set(map(kind_of, tasks))
    assert len(sample) < len(tasks) / 4


def test_the_red_team_tries_every_row_in_every_language() -> None:
    kernels = load_kernels(DeviceKind.CPU)
    again = repeated(kernels)
    tried = {(row, k.path.parent) for k in kernels for row in k.rows}
    assert {(row, k.path.parent) for k in kernels if k.name not in again for row in k.rows} == tried
    left = {*AGAIN, *TWINS}
    assert again < left
    rows = {row for kernel in kernels for row in kernel.rows}
    assert {row for kernel in kernels if kernel.name not in left for row in kernel.rows} == rows
