"""What `tests.bench.sound` calls sound, and which number of processes commands take."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from tests.bench.sound import good, slow_baselines
from tests.bench.spread import workers


def report(**changes: Any) -> dict[str, Any]:
    filters = [
        {"name": "work: bytes", "direction": "forward", "passed": True, "value": 1.0},
        {"name": "baseline", "direction": "backward", "passed": False, "value": 27.4},
    ]
    found: dict[str, Any] = {"mutants": [{}], "survivors": [], "honest": [{"scaled": 0.5}]}
    return {**found, "filters": filters, **changes}


def test_a_slow_baseline_alone_is_listed_apart() -> None:
    assert good(report())
    assert slow_baselines(report()) == ["backward 27"]


@pytest.mark.parametrize(
    "changes",
    [
        {"mutants": []},
        {"survivors": ["forward: zeros"]},
        {"honest": [{"scaled": 0.71}]},
        {"honest": []},
        {"filters": [{"name": "work: bytes", "passed": False}]},
        {"error": "the task's code failed"},
    ],
)
def test_all_else_makes_a_task_unsound(changes: dict[str, Any]) -> None:
    assert not good(report(**changes))


@pytest.mark.parametrize("text", ["0", "-1", "two", ""])
def test_without_a_process_nothing_would_be_done(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no number of processes"):
        workers(text)
    assert workers("2") == 2
