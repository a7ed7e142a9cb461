"""What wrong outputs look like: places, memory that was never set, values, and what is unknown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gpu_runner.engine.problem.compare import Limit
from tests.unit.gpu_runner.engine.wrong_outputs import (
    FLOATS,
    S,
    drawn,
    found,
    partly,
    poison,
    seeded,
    symptoms,
)

# Where


def test_a_wrong_end_a_wrong_block_and_few_wrong_elements() -> None:
    expected, other = drawn(64, 70), drawn(64, 70, seed=6).float()
    mask = torch.zeros(64, 70, dtype=torch.bool)
    mask[:, 64:] = True
    (finding,) = found(partly(expected.float(), other, mask), expected)
    assert finding.symptom is S.TAIL
    assert finding.text.startswith("wrong only in the last 6 columns:")
    mask.zero_()[16:32, 16:32] = True
    assert symptoms(partly(expected.float(), other, mask), expected) == [S.REGION]
    mask.zero_()[[3, 20, 41], [5, 60, 11]] = True
    assert symptoms(partly(expected.float(), other, mask), expected) == [S.SCATTERED]
    zeros = expected.float().flatten()
    zeros[-8:] = 0
    assert symptoms(zeros, expected.flatten()) == [S.ZEROS, S.TAIL]


# Nothing


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(64, 64), (8, 8, 9, 10), (5,)])
@pytest.mark.parametrize("size", [0.3, 1.0, 30.0])
def test_a_plainly_wrong_result_looks_like_nothing_known(
    dtype: torch.dtype, shape: tuple[int, ...], size: float
) -> None:
    for seed in range(3):
        expected, other = drawn(*shape, seed=seed), size * drawn(*shape, seed=seed + 50)
        if not dtype.is_floating_point:
            expected, other = (expected * 1000).long(), (other * 1000)
        told = symptoms(other.to(dtype), expected)
        assert told in ([], [S.SLIGHTLY_OFF], [S.LARGE_VALUES]), (seed, told)


# What was never set


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(1000,), (4, 5, 6)])
def test_an_output_that_was_never_written(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    expected = drawn(*shape) if dtype.is_floating_point else (drawn(*shape) * 9).long()
    assert symptoms(poison(shape, dtype), expected) == [S.NEVER_WRITTEN]


def test_a_single_element_that_was_never_written() -> None:
    for seed in range(20):
        assert symptoms(poison((1,), seed=seed), drawn(1)) == [S.NEVER_WRITTEN]
    expected = drawn(1000)  # to which was only added, on a CPU
    findings = found(poison((1000,)) + expected.float(), expected)
    assert [each.symptom for each in findings] == [S.NEVER_WRITTEN]
    assert "added to" in findings[0].text


PARTS: list[tuple[str, tuple[int, ...], Callable[[Tensor], object], str]] = [
    ("tail", (1000,), lambda m: m[900:].fill_(True), "the last 100 elements"),
    ("flat tail", (50, 20), lambda m: m.view(-1)[333:].fill_(True), "the elements from 333 on"),
    ("odd elements", (1000,), lambda m: m[1::2].fill_(True), "every 2nd of the elements"),
    (
        "border",
        (50, 20),
        lambda m: (m[48:].fill_(True), m[:, 16:].fill_(True)),
        "rows from 48 on and columns from 16 on",
    ),
    ("block", (64, 64), lambda m: m[16:32, 8:24].fill_(True), "the block [16:32, 8:24]"),
    (
        "scattered",
        (1000,),
        lambda m: m.index_fill_(0, torch.tensor([3, 70, 500]), True),
        "3 of 1000 elements",
    ),
]


@pytest.mark.parametrize(
    ("shape", "mark", "words"), [p[1:] for p in PARTS], ids=[p[0] for p in PARTS]
)
def test_a_part_that_was_not_written_is_named(
    shape: tuple[int, ...], mark: Callable[[Tensor], object], words: str
) -> None:
    mask = torch.zeros(shape, dtype=torch.bool)
    mark(mask)
    expected = drawn(*shape)
    (finding,) = found(partly(expected.float(), poison(shape), mask), expected)
    assert finding.symptom is S.PARTLY_WRITTEN
    assert finding.text.startswith(f"not written: {words}, where")


@pytest.mark.parametrize("seed", range(2))
def test_sums_that_began_with_what_the_output_held(seed: int) -> None:
    """FP16 and integers keep what is added; a device makes NaN anew."""
    expected = drawn(4096, seed=seed) * 50
    assert symptoms(poison((4096,), torch.float16, seed) + expected.half(), expected) == [
        S.ACCUMULATED
    ]
    counts = torch.randint(1, 500, (256,), generator=seeded(seed))
    for dtype in (torch.int32, torch.int64):
        held = poison((256,), dtype, seed)
        assert symptoms(held + counts.to(dtype), counts) == [S.ACCUMULATED]
    added = poison((4096,), torch.float32, seed)
    bits = added.view(torch.int32)
    bits[added.isnan()] = 0x7FFFFFFF
    assert symptoms(added, expected) == [S.ACCUMULATED]
    assert symptoms(0.5 * poison((4096,), torch.float32, seed) + 1, expected) == [S.ACCUMULATED]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_beta_of_zero_reads_what_was_never_set(dtype: torch.dtype) -> None:
    expected = drawn(256, 256)
    held = poison((256, 256), dtype)
    actual = expected.to(dtype) + torch.where(held.isnan(), torch.nan, 0.0).to(dtype)
    assert symptoms(actual, expected) == [S.READ_BEFORE_SET]


# Another dtype's layout


@pytest.mark.parametrize("own", FLOATS)
@pytest.mark.parametrize("other", [*FLOATS, torch.int32])
@pytest.mark.parametrize("shape", [(512,), (30, 34)])
def test_an_output_written_as_another_dtype(
    own: torch.dtype, other: torch.dtype, shape: tuple[int, ...]
) -> None:
    if own is other:
        return
    expected = 20 * drawn(*shape)
    written = expected.to(other).view(-1).view(torch.uint8)
    actual = poison(shape, own)
    room = actual.view(-1).view(torch.uint8)
    count = min(room.numel(), written.numel())
    room[:count] = written[:count]
    (finding,) = found(actual, expected)
    assert finding.symptom is S.OTHER_DTYPE
    assert f"right as {str(other)[6:]}" in finding.text


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


def test_offsets() -> None:
    expected = drawn(1000)
    (finding,) = found(expected.float() + 0.125, expected)
    assert (finding.symptom, "0.125" in finding.text) == (S.OFFSET, True)
    index = torch.randint(0, 1000, (500,), generator=seeded(1))
    assert symptoms(index + 1, index) == [S.OFFSET]
    ones = torch.ones(1000, dtype=torch.float64)  # neither factor nor offset
    assert symptoms(torch.full((1000,), 3.0), ones) == []


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


# Errors


def rounded_to(values: Tensor, bits: int) -> Tensor:
    """Rounded to so many bits of mantissa; TF32 and FP16 have 11, BF16 has 8."""
    mantissa, exponent = torch.frexp(values)
    return torch.ldexp((mantissa * 2**bits).round() / 2**bits, exponent)


def product(bits: int | None, *, positive: bool = False, length: int = 512) -> tuple[Tensor, ...]:
    """A product whose inputs have so many bits, the right one, and the sums of sizes."""
    a, b = drawn(96, length, seed=1), drawn(length, 80, seed=2)
    if positive:
        a, b = a.abs(), b.abs()
    few = (a, b) if bits is None else (rounded_to(a, bits), rounded_to(b, bits))
    return (few[0] @ few[1]), a @ b, a.abs() @ b.abs()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("bits", "words"), [(11, "TF32"), (8, "BF16")])
def test_products_in_a_lower_precision(bits: int, words: str, scaled: bool, positive: bool) -> None:
    actual, expected, sizes = product(bits, positive=positive)
    options = {"scale": sizes, "limit": Limit(2.0)} if scaled else {"limit": Limit(40.0)}
    (finding,) = found(actual.float(), expected, length=512.0, **options)
    assert finding.symptom is S.LOWER_PRECISION
    assert words in finding.text


@pytest.mark.parametrize(("dtype", "name"), [(torch.bfloat16, "BF16"), (torch.float16, "FP16")])
def test_values_that_were_rounded_on_the_way(dtype: torch.dtype, name: str) -> None:
    expected = drawn(64, 64).exp()
    (finding,) = found(expected.to(dtype).float(), expected)
    assert (finding.symptom, name in finding.text) == (S.LOWER_PRECISION, True)


def test_another_formula() -> None:
    source = drawn(20000)
    expected = torch.nn.functional.gelu(source)
    by_tanh = torch.nn.functional.gelu(source, approximate="tanh")
    assert symptoms(by_tanh.float(), expected) == [S.OTHER_FORMULA]
    positive = source.abs()
    few_terms = positive - positive**3 / 6 + positive**5 / 120 - positive**7 / 5040
    near = positive < 1.5
    assert symptoms(few_terms[near].float(), positive[near].sin()) == [S.OTHER_FORMULA]
    twice = positive.sin() + 0.001 * positive**2  # a value comes with two errors
    assert symptoms(twice.float(), positive.sin()) == []
    (finding,) = found(source.bfloat16().double().sigmoid().float(), source.sigmoid())
    assert (finding.symptom, "BF16" in finding.text) == (S.LOWER_PRECISION, True)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9, 0.97])
def test_a_part_of_a_sum_is_missing(share: float) -> None:
    a, b = drawn(96, 400, seed=1), drawn(400, 80, seed=2)
    used = int(400 * share)
    findings = found((a[:, :used] @ b[:used]).float(), a @ b, length=400.0)
    assert [each.symptom for each in findings] == [S.PART_MISSING]
    assert int(findings[0].text.split("%")[0].split()[-1]) == pytest.approx(100 * share, abs=4)
    if share == 0.5:  # a positive sum, and an addend
        source = drawn(2000, 64).abs()
        half = symptoms(source[:, :32].sum(1).float(), source.sum(1), length=64.0)
        values, bias = drawn(64, 64), drawn(64, 64, seed=3)
        assert half == symptoms(values.float(), values + bias) == [S.PART_MISSING]


def test_wrong_only_where_values_are_large_or_of_one_sign() -> None:
    expected = drawn(4096)
    large = partly(expected.float(), 1.3 * drawn(4096, seed=8).float(), expected.abs() > 1.5)
    assert symptoms(large, expected) == [S.LARGE_VALUES]
    leaky = torch.where(expected < 0, 0.1 * expected, expected)
    garbage = partly(expected.float(), drawn(4096, seed=8).float(), expected < 0)
    assert symptoms(expected.relu().float(), leaky) == [S.ZEROS]
    assert symptoms(garbage, expected)[0] is S.ONE_SIGN
