"""What a comparison and a bound say."""

from __future__ import annotations

import pytest

from gpu_runner.check.checking import Bound, Ratio

NOISE = [1.0, 1.01, 0.99, 1.02, 0.98]


def test_the_same_kernel_is_no_difference() -> None:
    ratio = Ratio.of([100 * n for n in NOISE], [100 * n for n in reversed(NOISE)])
    assert ratio.low < 1 < ratio.high


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_a_difference_beyond_the_noise_is_one(factor: float) -> None:
    ratio = Ratio.of([100 * factor * n for n in NOISE], [100 * n for n in reversed(NOISE)])
    assert ratio.value == pytest.approx(factor)
    assert (ratio.low > 1) == (factor > 1)
    assert (ratio.high < 1) == (factor < 1)


def test_a_bound_is_proven_by_several_ways_that_all_pass() -> None:
    assert Bound(ways=5).is_proven
    assert not Bound(ways=2).is_proven
    assert not Bound(ways=5, failed=("in pairs",)).is_proven
    assert not Bound(reason="the reference is random").is_proven
