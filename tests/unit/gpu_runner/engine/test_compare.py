"""The comparison must pass honest rounding and fail everything else, element by element."""

from __future__ import annotations

import math

import pytest
import torch

from gpu_runner.engine.problem import compare as module
from gpu_runner.engine.problem.compare import Limit, ScaleError, compare

LIMIT = Limit.of(16.0, 4.0, 1.0)

INF, NAN = math.inf, math.nan
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


def values(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_rounded_expected_value_passes_with_a_small_error(dtype: torch.dtype) -> None:
    expected = torch.randn(1000, dtype=torch.float64)
    result = compare(expected.to(dtype), expected, LIMIT)
    assert result.mismatch is None
    assert result.scaled <= 0.5 / 20
    assert result.relative <= torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_bound_is_where_the_docstring_says(dtype: torch.dtype) -> None:
    assert (LIMIT.factor, Limit.of(16.0, 4.0, 10000.0).factor) == (20.0, 416.0)
    expected = values(1.0, 1.0, 1.0, 1.0)
    bound = torch.finfo(dtype).eps * 20 * 2  # |e| + rms(e) = 2
    for steps, passes in ((0.9, True), (1.2, False)):
        actual = expected.clone()
        actual[2] += steps * bound
        result = compare(actual.to(dtype), expected, LIMIT)
        assert (result.mismatch is None) is passes, steps
        assert result.scaled == pytest.approx(steps, rel=0.1)


def test_a_mismatch_names_the_first_wrong_element_and_counts_all() -> None:
    expected = torch.arange(24, dtype=torch.float64).view(2, 3, 4) + 1
    actual = expected.float()
    actual[1, 0, 3] = 99.0
    actual[1, 2, 1] = -1.0
    wrong = compare(actual, expected, LIMIT).mismatch
    assert wrong is not None
    assert wrong.index == (1, 0, 3)
    assert (wrong.expected, wrong.actual) == (16.0, 99.0)
    assert (wrong.wrong_elements, wrong.elements) == (2, 24)
    assert wrong.bound is not None
    assert wrong.bound == pytest.approx(
        torch.finfo(torch.float32).eps * 20 * (16 + expected.square().mean().sqrt().item())
    )
    assert wrong.reason.startswith("off by 8.30e+01, bound ")
    turned = compare(actual.transpose(0, 2), expected.transpose(0, 2), LIMIT).mismatch
    assert turned is not None  # not contiguous
    assert turned.index == (1, 2, 1)


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        (0.25, NAN, "NaN where 0.25 was expected"),
        (NAN, 0.25, "0.25 where NaN was expected"),
        (INF, 3e38, "3e+38 where inf was expected"),
        (INF, -INF, "-inf where inf was expected"),
        (INF, NAN, "NaN where inf was expected"),
        (NAN, INF, "inf where NaN was expected"),
        (-INF, INF, "inf where -inf was expected"),
        (0.25, INF, "inf where 0.25 was expected"),
        (1e39, 3.4e38, "3.4e+38 where 1e+39 was expected"),
        (-1e39, INF, "inf where -1e+39 was expected"),
    ],
)
def test_special_values_must_match_in_place(expected: float, actual: float, reason: str) -> None:
    result = compare(torch.tensor([1.0, actual]), values(1.0, expected), LIMIT)
    assert result.mismatch is not None
    assert result.mismatch.reason == reason
    assert result.mismatch.index == (1,)
    assert result.scaled == INF


@pytest.mark.parametrize(
    ("expected", "actual"), [(NAN, NAN), (INF, INF), (-INF, -INF), (1e39, INF), (-1e39, -INF)]
)
def test_special_values_in_place_pass_and_leave_the_rest_judged(
    expected: float, actual: float
) -> None:
    assert compare(torch.tensor([1.0, actual]), values(1.0, expected), LIMIT).mismatch is None
    wrong = compare(torch.tensor([1.5, actual]), values(1.0, expected), LIMIT).mismatch
    assert wrong is not None
    assert wrong.index == (0,)
    overflow = values(1e5, 100.0)  # infinite in float16
    assert compare(torch.tensor([INF, 100.0]).half(), overflow, LIMIT).mismatch is None
    assert compare(torch.tensor([65504.0, 100.0]).half(), overflow, LIMIT).mismatch is not None


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.int8, torch.uint8, torch.int16])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    expected = torch.tensor([3, 100, 7])
    assert compare(expected.to(dtype), expected, LIMIT) == module.Comparison(0.0, 0.0, None)
    result = compare(torch.tensor([3, 100, 8], dtype=dtype), expected, LIMIT)
    assert result.mismatch is not None
    assert result.mismatch.reason == "8 where 7 was expected"
    assert (result.mismatch.index, result.mismatch.bound) == ((2,), 0.0)
    assert result.scaled == INF
    assert compare(torch.tensor([2], dtype=dtype), values(2.0), LIMIT).mismatch is None
    assert compare(torch.tensor([2], dtype=dtype), values(2.5), LIMIT).mismatch is not None
    large = 2**60 + 1
    assert compare(torch.tensor([large - 1]), torch.tensor([large]), LIMIT).mismatch is not None


def test_bools_are_exact_and_other_bytes_are_wrong() -> None:
    expected = torch.tensor([True, False])
    assert compare(expected.clone(), expected, LIMIT).mismatch is None
    wrong = compare(torch.tensor([True, True]), expected, LIMIT).mismatch
    assert wrong is not None
    assert wrong.reason == "True where False was expected"
    assert (wrong.expected, wrong.actual) == (0.0, 1.0)
    written = torch.tensor([1, 0x75, 0], dtype=torch.uint8).view(torch.bool)
    result = compare(written, torch.tensor([True, True, False]), Limit(1.0))
    assert result.mismatch is not None
    assert (result.mismatch.index, result.mismatch.wrong_elements) == ((1,), 1)


def test_zero_dimensions_no_elements_and_other_shapes() -> None:
    empty = torch.empty(3, 0)
    assert compare(empty, empty.double(), LIMIT) == module.Comparison(0.0, 0.0, None)
    with pytest.raises(ValueError, match="shapes differ"):  # that is our error
        compare(torch.zeros(2), torch.zeros(3).double(), LIMIT)
    assert compare(torch.tensor(1.0), torch.tensor(1.0).double(), LIMIT).mismatch is None
    wrong = compare(torch.tensor(2.0), torch.tensor(1.0).double(), LIMIT).mismatch
    assert wrong is not None
    assert wrong.index == ()
    assert (wrong.wrong_elements, wrong.elements) == (1, 1)


def test_zeros_expected_need_zeros() -> None:
    expected = torch.zeros(5, dtype=torch.float64)
    assert compare(torch.zeros(5), expected, LIMIT) == module.Comparison(0.0, 0.0, None)
    result = compare(torch.full((5,), 1e-30), expected, LIMIT)
    assert result.mismatch is not None
    assert result.relative == INF
    least = torch.finfo(torch.float32).smallest_normal
    subnormal = values(least / 1e5, least / 3e5)
    assert compare(subnormal.float(), subnormal, LIMIT).mismatch is None


def test_a_default_scale_hides_no_error_behind_an_overflow() -> None:
    expected = torch.randn(100, dtype=torch.float64).abs() + 1e200
    actual = expected.clone()
    actual[7] = 0.0
    wrong = compare(actual, expected, LIMIT).mismatch
    assert wrong is not None
    assert wrong.index == (7,)
    expected = torch.randn(100, dtype=torch.float64)
    expected[3] = 1e300  # infinite in float32: no part of the scale
    actual32 = expected.float()
    assert compare(actual32, expected, LIMIT).mismatch is None
    actual32[50] += 0.01
    assert compare(actual32, expected, LIMIT).mismatch is not None


def test_a_scale_of_the_task_judges_each_element_by_its_own() -> None:
    expected = values(1e-6, 1e6)
    scale = values(1e-6, 1e6)
    assert compare(expected.float(), expected, LIMIT, scale).mismatch is None
    wrong = compare(torch.tensor([2e-6, 1e6]), expected, LIMIT, scale).mismatch
    assert wrong is not None
    assert wrong.index == (0,)
    # The default scale, with its rms, cannot see that one.
    assert compare(torch.tensor([2e-6, 1e6]), expected, LIMIT).mismatch is None
    assert torch.equal(scale, expected)  # it is left as it was
    # A sum of large terms that is near zero has a large relative error, and rightly so.
    near, actual = values(1e-9), torch.tensor([1e-4])
    assert compare(actual, near, LIMIT, values(1e3)).mismatch is None
    assert compare(actual, near, LIMIT).mismatch is not None
    zero = values(0.0)  # it allows no error
    assert compare(torch.tensor([0.0]), zero, LIMIT, zero).mismatch is None
    assert compare(torch.tensor([1e-20]), zero, LIMIT, zero).mismatch is not None


@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_scale_that_is_not_finite_is_the_tasks_error(bad: float) -> None:
    with pytest.raises(ScaleError):
        compare(torch.ones(2), values(1.0, 1.0), LIMIT, values(1.0, bad))
    assert compare(torch.tensor([1.0, NAN]), values(1.0, NAN), LIMIT, values(1.0, bad))


def test_many_small_errors_fail_as_a_whole() -> None:
    """Each element is below its bound of 2 * factor * eps; their norm is above factor * eps."""
    expected = torch.ones(1000, dtype=torch.float64)
    actual = (expected * (1 + 30 * torch.finfo(torch.float32).eps)).float()
    result = compare(actual, expected, LIMIT)
    assert result.scaled < 1
    assert result.mismatch is not None
    assert (result.mismatch.index, result.mismatch.wrong_elements) == ((), 0)
    assert "whole output" in result.mismatch.reason


@pytest.mark.parametrize("dtype", FLOATS)
def test_random_bits_fail(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(5)
    expected = torch.randn(4096, dtype=torch.float64, generator=generator)
    actual = expected.to(dtype, copy=True)
    bits = torch.randint(0, 256, (64 * dtype.itemsize,), dtype=torch.uint8, generator=generator)
    actual[1000:1064] = bits.view(dtype)
    wrong = compare(actual, expected, LIMIT).mismatch
    assert wrong is not None
    assert 1000 <= wrong.index[0] < 1064
    assert wrong.wrong_elements >= 50  # of 64: some bits are tiny numbers


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_eight_bits(dtype: torch.dtype) -> None:
    expected = torch.randn(100, dtype=torch.float64)
    limit = Limit(2.0)
    assert compare(expected.to(dtype), expected, limit).mismatch is None
    assert compare((expected + 20).to(dtype), expected, limit).mismatch is not None


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    expected = torch.randn(50_000, dtype=torch.float64)
    actual = expected.float()
    actual[[20_001, 49_999]] += 1
    whole = compare(actual, expected, LIMIT)
    monkeypatch.setattr(module, "_CHUNK_CPU", 997)
    parts = compare(actual, expected, LIMIT)
    assert parts.mismatch is not None
    assert parts.mismatch.index == (20_001,)
    assert parts.mismatch.wrong_elements == 2
    assert whole.scaled == pytest.approx(parts.scaled, rel=1e-12)
    assert whole.relative == pytest.approx(parts.relative, rel=1e-12)
    assert whole.mismatch is not None
    assert whole.mismatch.index == parts.mismatch.index


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_gpu_judges_as_the_cpu_does() -> None:
    expected = torch.randn(100_000, dtype=torch.float64)
    expected[5], expected[6] = NAN, 1e39
    actual = expected.float()
    actual[[70_000, 80_000]] += 1
    here, there = compare(actual, expected, LIMIT), compare(actual.cuda(), expected.cuda(), LIMIT)
    assert there.mismatch == here.mismatch
    assert there.scaled == pytest.approx(here.scaled, rel=1e-9)
    assert there.relative == pytest.approx(here.relative, rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("largest", "error", "passes"),
    [
        (1.0, math.exp(-80), True),  # an exponent that was kept above -80
        (1.0, 7e-31, True),
        (1.0, 9e-31, False),
        (1e-3, 9e-31, False),
        (1e-20, math.exp(-80), True),  # a sigmoid's result, and nothing else in the output
        (1e6, 7e-25, True),  # the exponential of a sum of products
        (1e6, 9e-25, False),
    ],
)
def test_what_an_exponential_loses_by_underflow_is_no_error(
    largest: float, error: float, passes: bool, dtype: torch.dtype
) -> None:
    expected = torch.tensor([largest, 1e-39], dtype=torch.float64)
    actual = torch.tensor([largest, error]).to(dtype)
    result = compare(actual, expected, Limit(8), expected.clone())
    assert (result.mismatch is None) is passes
    assert compare(torch.tensor([largest, 0.0]), expected, Limit(8), expected).mismatch is None


def test_tiny_numbers_alone_and_small_ones_of_float16_are_judged() -> None:
    assert compare(torch.zeros(2), values(3e-30, 1e-30), LIMIT).mismatch is not None
    expected, actual = values(1.0, 3e-5), torch.tensor([1.0, 0.0], dtype=torch.float16)
    assert compare(actual, expected, Limit(8), expected.clone()).mismatch is not None
