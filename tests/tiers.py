"""What `make test` leaves to `make test ALL=1`: the tests marked `thorough`.

Two marks say that the cases of a test show the same of other data; this module then marks most of
them `thorough`, and always the same ones:

- `sampled(n)`: n cases run, spread over their order, with the first and the last.
- `each_task`: of the built-in tasks one of each kind is tried (`kind_of`).

`thorough(reason="...")` by hand leaves a whole test. A test of which nothing would run is an error,
but for those: so each file and each test is in both tiers, or says why not.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import pytest

from gpu_runner.data.formats import catalog_specifications, load_task
from gpu_runner.data.task import Task

THOROUGH = "thorough"


def leave(items: Sequence[pytest.Item], selected: str = "") -> None:
    """Mark what is left to `make test ALL=1` among these tests.

    selected: the expression of `-m`. Raises `pytest.UsageError` where it leaves out too much.
    """
    for cases in _by_function(items).values():
        kept = set(kept_of(cases))
        for item in cases:
            if item not in kept:
                item.add_marker(THOROUGH)
    if f"not {THOROUGH}" in selected and (mute := without_any(items)):
        raise pytest.UsageError(f"`make test` would run no case of {', '.join(mute)}")


def kept_of(cases: Sequence[pytest.Item]) -> Sequence[pytest.Item]:
    """Those cases of one test that `make test` runs, but for marks by hand."""
    first = cases[0]
    if first.get_closest_marker("each_task") is not None:
        named = [(item, task_of(item)) for item in cases]
        sample = sample_of_tasks()
        kept = [item for item, name in named if name is None or name in sample]
        cases = kept or [item for item, name in named if name == named[0][1]]
    marker = first.get_closest_marker("sampled")
    return cases if marker is None else spread(cases, *marker.args)


def spread(cases: Sequence[pytest.Item], count: int) -> Sequence[pytest.Item]:
    """So many of them, evenly over their order."""
    if len(cases) <= count:
        return cases
    return [cases[place * (len(cases) - 1) // max(count - 1, 1)] for place in range(count)]


def task_of(item: pytest.Item) -> str | None:
    """The built-in task that a case is about, if it is about one."""
    values = getattr(getattr(item, "callspec", None), "params", {})
    name = values.get("name", getattr(values.get("case"), "name", None))
    return name if isinstance(name, str) else None


def kind_of(task: Task) -> tuple[object, ...]:
    """What the engine does differently for: two tasks of one kind run through the same code."""
    return task.abi, task.scenario, task.dtype, task.directions, task.has_verifier


@functools.cache
def sample_of_tasks() -> frozenset[str]:
    """The first built-in task of each kind."""
    first: dict[tuple[object, ...], str] = {}
    for name, path in sorted(catalog_specifications().items()):
        first.setdefault(kind_of(load_task(path)), name)
    return frozenset(first.values())


def without_any(items: Iterable[pytest.Item]) -> list[str]:
    """Tests of which `make test` would run no case, though nobody has left them by hand."""
    return [
        name
        for name, cases in _by_function(items).items()
        if all(item.get_closest_marker(THOROUGH) and not by_hand(item) for item in cases)
    ]


def by_hand(item: pytest.Item) -> bool:
    """Whether somebody has left it, and said why."""
    return any(marker.kwargs.get("reason") for marker in item.iter_markers(THOROUGH))


def _by_function(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return found
