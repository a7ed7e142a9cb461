"""Wrong values that one number, or another place, explains; NaN and infinity."""

from __future__ import annotations

import pytest
import torch

from tests.unit.gpu_runner.engine.wrong_outputs import FLOATS, S, drawn, found, seeded, symptoms

# NaN, infinity and finite numbers in their place


def test_nan_infinite_and_finite_numbers() -> None:
    expected = drawn(1000)
    nan = torch.full((1000,), torch.nan)
    assert symptoms(nan, expected) == [S.NOT_A_NUMBER]
    assert symptoms(torch.full((1000,), torch.inf), expected) == [S.INFINITE]
    mixed = nan.clone()
    mixed[::3] = torch.inf
    (finding,) = found(mixed, expected)
    assert finding.symptom is S.NOT_A_NUMBER
    assert "overflow" in finding.text
    special = expected.clone()
    special[::2] = torch.nan
    assert symptoms(torch.full((1000,), 7.0), special)[0] is S.FINITE
    special[::2] = 1e39  # infinite in float32
    assert symptoms(special.clamp(max=3e38).float(), special)[0] is S.FINITE
    rows, some = drawn(64, 64), -drawn(64, 64).float()
    some[60:] = torch.nan
    assert symptoms(some, rows)[:2] == [S.NOT_A_NUMBER, S.SIGN]


# One number that explains all


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1000,), (32, 32), (1,), (3,)])
def test_signs_factors_and_zeros(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    expected = drawn(*shape, seed=4)
    fine = dtype in (torch.float32, torch.float64) or len(shape) > 1 or shape[0] > 8
    for factor, symptom in ((-1.0, S.SIGN), (2.0, S.FACTOR), (0.0, S.ZEROS), (1 / 64, S.FACTOR)):
        actual = (factor * expected).to(dtype)
        told = symptoms(actual, expected)
        if fine or factor == 0:
            assert told == [symptom], factor
        else:  # the bound is too wide for one element to tell
            assert told in ([], [S.SLIGHTLY_OFF]), factor


def test_any_factor_of_many_elements_but_not_of_one() -> None:
    expected = drawn(1000)
    (finding,) = found(1.2345 * expected.float(), expected)
    assert finding.symptom is S.FACTOR
    assert "1.2345 times" in finding.text
    assert symptoms(1.2345 * expected[:1].float(), expected[:1]) == []


def test_offsets() -> None:
    expected = drawn(1000)
    (finding,) = found(expected.float() + 0.125, expected)
    assert (finding.symptom, "0.125" in finding.text) == (S.OFFSET, True)
    index = torch.randint(0, 1000, (500,), generator=seeded(1))
    assert symptoms(index + 1, index) == [S.OFFSET]
    ones = torch.ones(1000, dtype=torch.float64)  # neither factor nor offset
    assert symptoms(torch.full((1000,), 3.0), ones) == []


def test_one_value_for_all() -> None:
    expected = drawn(64, 64)
    assert symptoms(torch.full((64, 64), 0.7), expected) == [S.REPEATED]
    assert symptoms(expected[:, :1].expand(64, 64).float().contiguous(), expected)[0] is S.REPEATED


def test_rows_and_columns_with_a_factor_or_an_amount_of_their_own() -> None:
    source = drawn(64, 128)
    assert symptoms(source.exp().float(), source.softmax(1))[0] is S.FACTOR_BY_LINE
    assert symptoms(source.softmax(0).float(), source.softmax(1)) == []
    shifted = source - source.amax(1, keepdim=True)
    assert symptoms(shifted.float(), source.log_softmax(1)) == [S.OFFSET_BY_LINE]
    bias = drawn(128, seed=9)
    (finding,) = found(source.float(), source + bias)
    assert finding.symptom is S.OFFSET_BY_LINE
    assert "column" in finding.text


# The right values, elsewhere


def test_transposed() -> None:
    for shape in ((48, 48), (30, 70), (5, 24, 24), (3, 10, 20), (2, 3, 4, 50)):
        expected = drawn(*shape)
        actual = expected.transpose(-1, -2).contiguous().view(shape).float()
        told = found(actual, expected)
        assert [each.symptom for each in told] == [S.TRANSPOSED], shape
        assert ("rows and columns" in told[0].text) == (len(shape) == 2)
    expected = drawn(2, 3, 5, 7)
    actual = expected.permute(0, 2, 3, 1).contiguous().view(2, 3, 5, 7).float()
    (finding,) = found(actual, expected)
    assert (finding.symptom, "0, 2, 3, 1" in finding.text) == (S.TRANSPOSED, True)


@pytest.mark.parametrize("shape", [(1000,), (32, 40), (4, 5, 60)])
@pytest.mark.parametrize("step", [1, -1])
def test_shifted_by_one(shape: tuple[int, ...], step: int) -> None:
    expected = drawn(*shape)
    for axis in range(len(shape)):
        (finding, *_) = found(expected.roll(step, axis).float(), expected)
        assert finding.symptom is S.SHIFTED
        assert len(shape) == 1 or f"dimension {axis}" in finding.text
    source = drawn(5000)  # a scan that leaves out its own element
    inclusive = source.cumsum(0)
    assert symptoms((inclusive - source).float(), inclusive, length=5000.0)[0] is S.SHIFTED


def test_reversed_and_permuted() -> None:
    expected = drawn(1000)
    assert symptoms(expected.flip(0).float(), expected) == [S.REVERSED]
    order = torch.randperm(1000, generator=seeded(3))
    assert symptoms(expected[order].float(), expected) == [S.PERMUTED]
    swapped = expected.float()
    swapped[[5, 800]] = swapped[[800, 5]]
    assert symptoms(swapped, expected) == [S.PERMUTED]
    classes = torch.randint(0, 5, (1000,), generator=seeded(3))
    assert symptoms(classes[order], classes) == []
