"""Where outputs are wrong, what was never set, and outputs that look like nothing known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

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
