"""Statistics of repeats."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from runs_app.core.integrity.intervals import Interval, geometric_interval
from runs_app.features.compare.ablation import AblationRun, group


def run(speedup: float | None, **setting: str) -> AblationRun:
    fields: dict[str, Any] = {"usd": 2.0, "tokens": 10, "measured": 4, "correct": 3}
    improved = speedup is not None and speedup > 1
    return AblationRun(run="r", setting=setting, speedup=speedup, improved=improved, **fields)


def test_nothing_has_no_mean_and_one_value_no_interval() -> None:
    assert geometric_interval(()) is None
    found = geometric_interval((3.0,))
    assert found is not None
    assert (found.mean, found.method) == (pytest.approx(3.0), "none")
    assert Interval(9.0, 9.0, 9.0, "none").overlaps(Interval(1.0, 0.9, 1.1, "t"))
    with pytest.raises(ValueError, match="positive"):
        geometric_interval((1.0, 0.0))


def test_two_values_by_students_t() -> None:
    """mean of logs ln 4 / 2 = ln 2, deviation ln(4)/sqrt(2), error ln(4)/2, t = 12.706."""
    found = geometric_interval((1.0, 4.0))
    assert found is not None
    assert found.method == "t"
    assert found.mean == pytest.approx(2.0)
    assert found.high == pytest.approx(2 * math.exp(12.706 * math.log(4) / 2))
    assert found.low * found.high == pytest.approx(4.0)


@pytest.mark.parametrize("repeats", [3, 12])
def test_intervals_hold_the_truth_about_as_often_as_they_say(repeats: int) -> None:
    rng = random.Random(repeats)
    held = 0
    for _ in range(150):
        values = tuple(math.exp(rng.gauss(0.7, 0.3)) for _ in range(repeats))
        found = geometric_interval(values)
        assert found is not None
        held += found.low <= math.exp(0.7) <= found.high
    assert 0.85 <= held / 150 <= 1.0


def test_groups_are_ranked_and_tie_where_intervals_overlap() -> None:
    fast = [run(value, strategy="evolve") for value in (4.0, 4.1, 4.2)]
    same = [run(value, strategy="fsr") for value in (3.9, 4.1, 4.2)]
    slow = [run(value, strategy="translate") for value in (1.0, 1.01, 1.02)]
    groups = group([*slow, *same, *fast], ["strategy"])
    assert [dict(g.values)["strategy"] for g in groups] == ["evolve", "fsr", "translate"]
    assert [(g.rank, g.tied) for g in groups] == [(1, True), (1, True), (3, False)]
    groups = group([run(None, s="a"), run(1.5, s="b")], ["s"])
    assert [g.rank for g in groups] == [1, 0]
    assert groups[1].interval is None


def test_runs_without_a_correct_kernel_count_as_runs() -> None:
    (found,) = group([run(2.0, strategy="a"), run(None, strategy="a")], ["strategy"])
    assert found.interval is not None
    assert found.interval.mean == pytest.approx(2.0)
    assert found.interval.method == "none"
    assert found.improved_share == 0.5
    assert found.correct_share == pytest.approx(0.75)
    assert (found.mean_usd, found.mean_tokens) == (2.0, 10)
