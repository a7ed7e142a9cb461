"""What wrong outputs look like: one kernel's mistake a symptom, and nothing where nothing fits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gpu_runner.data.poison import HUGE
from gpu_runner.data.symptom import GENERAL, WORDS_LIMIT, Finding, Symptom
from gpu_runner.engine.compare import Limit, compare, wrong_elements
from gpu_runner.engine.diagnosis import Case, diagnose

LIMIT = Limit.of(16.0, 4.0, 1.0)
S = Symptom
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=seeded(seed))


def poison(shape: tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 7) -> Tensor:
    """What an output holds before a call."""
    count = math.prod(shape) * dtype.itemsize
    data = torch.randint(0, 256, (count,), dtype=torch.uint8, generator=seeded(seed))
    return data.bitwise_or_(HUGE).view(dtype).view(shape)


def found(
    actual: Tensor,
    expected: Tensor,
    *,
    length: float = 1.0,
    scale: Tensor | None = None,
    limit: Limit | None = None,
) -> tuple[Finding, ...]:
    limit = limit or Limit.of(16.0, 4.0, length)
    compared = compare(actual, expected, limit, scale)
    assert compared.mismatch is not None, "the output is right"
    wrong = wrong_elements(actual, expected, limit, scale)
    assert int(wrong.sum()) == compared.mismatch.wrong_elements
    case = Case(
        actual,
        expected,
        wrong,
        factor=limit.factor,
        scale=scale,
        worst=compared.scaled,
        length=length,
    )
    findings = diagnose(case)
    assert all(len(each.text.split()) <= WORDS_LIMIT for each in findings), findings
    return findings


def symptoms(*arguments: Tensor, **options: object) -> list[Symptom]:
    return [each.symptom for each in found(*arguments, **options)]  # type: ignore[arg-type]


def partly(good: Tensor, bad: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, bad, good)


def test_every_symptom_has_a_sentence_that_fits() -> None:
    assert set(GENERAL) == set(Symptom)
    assert all(len(text.split()) <= WORDS_LIMIT for text in GENERAL.values())
    assert all(text[0].islower() or text.startswith("NaN") for text in GENERAL.values())


# What was never set


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(1000,), (7, 33), (4, 5, 6)])
def test_an_output_that_was_never_written(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    expected = drawn(*shape) if dtype.is_floating_point else (drawn(*shape) * 9).long()
    assert symptoms(poison(shape, dtype), expected) == [S.NEVER_WRITTEN]


def test_a_single_element_that_was_never_written() -> None:
    for seed in range(20):
        assert symptoms(poison((1,), seed=seed), drawn(1)) == [S.NEVER_WRITTEN]


def test_an_output_to_which_was_only_added_on_a_cpu_cannot_be_told_from_one_never_written() -> None:
    expected = drawn(1000)
    findings = found(poison((1000,)) + expected.float(), expected)
    assert [each.symptom for each in findings] == [S.NEVER_WRITTEN]
    assert "added to" in findings[0].text


PARTS: list[tuple[str, tuple[int, ...], Callable[[Tensor], object], str]] = [
    ("tail", (1000,), lambda m: m[900:].fill_(True), "the last 100 elements"),
    ("last element", (1001,), lambda m: m[1000:].fill_(True), "the last 1 elements"),
    ("last rows", (50, 20), lambda m: m[47:].fill_(True), "the last 3 rows"),
    ("last columns", (50, 20), lambda m: m[:, 16:].fill_(True), "the last 4 columns"),
    ("flat tail", (50, 20), lambda m: m.view(-1)[333:].fill_(True), "all elements from 333 on"),
    ("odd elements", (1000,), lambda m: m[1::2].fill_(True), "every 2nd of the elements"),
    ("every third row", (60, 20), lambda m: m[2::3].fill_(True), "every 3rd of the rows"),
    (
        "border",
        (50, 20),
        lambda m: (m[48:].fill_(True), m[:, 16:].fill_(True)),
        "rows from 48 on and columns from 16 on",
    ),
    ("block", (64, 64), lambda m: m[16:32, 8:24].fill_(True), "the block [16:32, 8:24]"),
    (
        "some rows",
        (64, 64),
        lambda m: m.index_fill_(0, torch.tensor([3, 4, 9]), True),
        "3 whole rows",
    ),
    ("plane", (4, 6, 8), lambda m: m[:, :, 7].fill_(True), "the last 1 indices of dimension 2"),
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
    assert finding.text.startswith(f"{words} still hold")


def test_what_was_written_is_looked_at_beside_a_part_that_was_not() -> None:
    expected = drawn(1000)
    actual = 2 * expected.float()
    actual[990:] = poison((10,))
    assert symptoms(actual, expected) == [S.PARTLY_WRITTEN, S.FACTOR]


@pytest.mark.parametrize("seed", range(5))
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


def test_softmax_without_its_maximum() -> None:
    source = 100 * drawn(64, 128)
    exponentials = source.float().exp()
    actual = exponentials / exponentials.sum(1, keepdim=True)
    assert symptoms(actual, source.softmax(1))[0] is S.NOT_A_NUMBER


def test_some_rows_of_nan_beside_another_mistake() -> None:
    expected = drawn(64, 64)
    actual = -expected.float()
    actual[60:] = torch.nan
    assert symptoms(actual, expected)[:2] == [S.NOT_A_NUMBER, S.SIGN]


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


def test_a_constant_off_by_a_constant_is_neither_factor_nor_offset() -> None:
    assert symptoms(torch.full((1000,), 3.0), torch.ones(1000, dtype=torch.float64)) == []


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


def test_a_scan_that_leaves_out_its_own_element() -> None:
    source = drawn(5000)
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


def test_tf32_inputs_that_are_cut_off() -> None:
    a, b = (drawn(96, 512, seed=1).float(), drawn(512, 80, seed=2).float())
    cut = [(each.view(torch.int32) & ~0x1FFF).view(torch.float32).double() for each in (a, b)]
    (finding,) = found((cut[0] @ cut[1]).float(), a.double() @ b.double(), length=512.0)
    assert (finding.symptom, "TF32" in finding.text) == (S.LOWER_PRECISION, True)


def test_a_float64_task_in_float32() -> None:
    actual, expected, _ = product(24, length=300)
    (finding,) = found(actual, expected, length=300.0)
    assert (finding.symptom, "float32" in finding.text) == (S.LOWER_PRECISION, True)
    (finding,) = found(drawn(1000).float().double(), drawn(1000))
    assert (finding.symptom, "bits of float32" in finding.text) == (S.LOWER_PRECISION, True)


@pytest.mark.parametrize(("dtype", "name"), [(torch.bfloat16, "BF16"), (torch.float16, "FP16")])
def test_values_that_were_rounded_on_the_way(dtype: torch.dtype, name: str) -> None:
    expected = drawn(64, 64).exp()
    (finding,) = found(expected.to(dtype).float(), expected)
    assert (finding.symptom, name in finding.text) == (S.LOWER_PRECISION, True)


def test_sums_kept_in_bf16() -> None:
    source = drawn(64, 4096).abs()
    total = torch.zeros(64, dtype=torch.bfloat16)
    for column in source[:, :256].T:
        total += column.bfloat16()
    expected = source[:, :256].sum(1)
    findings = symptoms(total, expected, limit=Limit(1.0))
    assert set(findings) <= {S.LOWER_PRECISION, S.SLIGHTLY_OFF, S.FACTOR, S.OFFSET}
    noisy = drawn(64, 64)
    actual = (noisy + 0.03 * drawn(64, 64, seed=5)).bfloat16()
    (finding, *_) = found(actual, noisy, limit=Limit(1.0))
    assert (finding.symptom, "bfloat16" in finding.text) == (S.LOWER_PRECISION, True)


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


def test_slightly_off() -> None:
    expected = drawn(4096)
    bound = torch.finfo(torch.float32).eps * 20 * (expected.abs() + expected.square().mean().sqrt())
    for worst in (1.3, 3.0):
        error = torch.rand(4096, dtype=torch.float64, generator=seeded(2)) * 2 - 1
        (finding,) = found((expected + worst * bound * error).float(), expected)
        assert finding.symptom is S.SLIGHTLY_OFF
    one = expected.float()
    one[77] += 2 * bound[77]
    (finding,) = found(one, expected)
    assert (finding.symptom, finding.text[:3]) == (S.SLIGHTLY_OFF, "2 t")


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9, 0.97])
def test_a_part_of_a_sum_is_missing(share: float) -> None:
    a, b = drawn(96, 400, seed=1), drawn(400, 80, seed=2)
    used = int(400 * share)
    findings = found((a[:, :used] @ b[:used]).float(), a @ b, length=400.0)
    assert [each.symptom for each in findings] == [S.PART_MISSING]
    assert int(findings[0].text.split("%")[0].split()[-1]) == pytest.approx(100 * share, abs=4)


def test_a_missing_addend_and_half_of_a_positive_sum() -> None:
    values, bias = drawn(64, 64), drawn(64, 64, seed=3)
    assert symptoms(values.float(), values + bias) == [S.PART_MISSING]
    source = drawn(2000, 64).abs()
    assert symptoms(source[:, :32].sum(1).float(), source.sum(1), length=64.0) == [S.PART_MISSING]


def test_wrong_only_where_values_are_large_or_of_one_sign() -> None:
    expected = drawn(4096)
    large = partly(expected.float(), 1.3 * drawn(4096, seed=8).float(), expected.abs() > 1.5)
    assert symptoms(large, expected) == [S.LARGE_VALUES]
    leaky = torch.where(expected < 0, 0.1 * expected, expected)
    garbage = partly(expected.float(), drawn(4096, seed=8).float(), expected < 0)
    assert symptoms(expected.relu().float(), leaky) == [S.ZEROS]
    assert symptoms(garbage, expected)[0] is S.ONE_SIGN


# Where


def test_a_wrong_end_a_wrong_block_and_few_wrong_elements() -> None:
    expected, other = drawn(64, 70), drawn(64, 70, seed=6).float()
    mask = torch.zeros(64, 70, dtype=torch.bool)
    mask[:, 64:] = True
    (finding,) = found(partly(expected.float(), other, mask), expected)
    assert finding.symptom is S.TAIL
    assert finding.text.startswith("only the last 6 columns are wrong")
    mask.zero_()[16:32, 16:32] = True
    assert symptoms(partly(expected.float(), other, mask), expected) == [S.REGION]
    mask.zero_()[[3, 20, 41], [5, 60, 11]] = True
    assert symptoms(partly(expected.float(), other, mask), expected) == [S.SCATTERED]


def test_zeros_in_a_tail() -> None:
    expected = drawn(1000)
    actual = expected.float()
    actual[992:] = 0
    assert symptoms(actual, expected) == [S.ZEROS, S.TAIL]


# Nothing


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(5000,), (64, 64), (8, 8, 9, 10), (5,)])
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


def test_bools_that_are_wrong() -> None:
    expected = drawn(4096) > 0
    assert symptoms(drawn(4096, seed=9) > 0, expected) == []
    assert symptoms(torch.zeros(4096, dtype=torch.bool), expected)[0] is S.ZEROS


def test_noise_of_no_known_precision() -> None:
    expected = drawn(4096)
    for size in (3e-2, 3e-5):
        assert symptoms((expected + size * drawn(4096, seed=4)).float(), expected) == []


def test_the_whole_of_it_is_off_where_no_element_is() -> None:
    expected = drawn(4096)
    actual = expected * (1 + 22 * torch.finfo(torch.float32).eps)
    told = found(actual.float(), expected)
    assert [each.symptom for each in told] in ([], [S.SLIGHTLY_OFF])


def test_large_outputs_cost_little_more() -> None:
    expected = torch.linspace(-1, 1, 1 << 24, dtype=torch.float64).view(1 << 12, 1 << 12)
    actual = expected.float()
    actual[:, 4000:] += 1
    wrong = wrong_elements(actual, expected, LIMIT)
    began = time.monotonic()
    told = diagnose(Case(actual, expected, wrong, factor=20.0))
    assert time.monotonic() - began < 5.0
    assert [each.symptom for each in told] == [S.OFFSET, S.TAIL]
