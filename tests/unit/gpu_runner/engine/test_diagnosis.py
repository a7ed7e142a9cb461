"""Where outputs are wrong, and outputs that look like nothing that is known."""

from __future__ import annotations

import time

import pytest
import torch

from gpu_runner.data.symptom import GENERAL, Symptom
from gpu_runner.engine.diagnosis import Case, diagnose
from gpu_runner.engine.problem.compare import wrong_elements
from tests.unit.gpu_runner.engine.wrong_outputs import (
    FLOATS,
    LIMIT,
    WORDS_LIMIT,
    S,
    drawn,
    found,
    partly,
    symptoms,
)


def test_every_symptom_has_a_sentence_that_fits() -> None:
    assert set(GENERAL) == set(Symptom)
    assert all(len(text.split()) <= WORDS_LIMIT for text in GENERAL.values())
    assert all(text[0].islower() or text.startswith("NaN") for text in GENERAL.values())


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


def test_noise_wrong_bools_and_a_whole_that_is_off() -> None:
    expected = drawn(4096)
    for size in (3e-2, 3e-5):  # no known precision
        assert symptoms((expected + size * drawn(4096, seed=4)).float(), expected) == []
    assert symptoms(drawn(4096, seed=9) > 0, expected > 0) == []
    assert symptoms(torch.zeros(4096, dtype=torch.bool), expected > 0)[0] is S.ZEROS
    whole = expected * (1 + 22 * torch.finfo(torch.float32).eps)
    assert symptoms(whole.float(), expected) in ([], [S.SLIGHTLY_OFF])


def test_large_outputs_cost_little_more() -> None:
    expected = torch.linspace(-1, 1, 1 << 24, dtype=torch.float64).view(1 << 12, 1 << 12)
    actual = expected.float()
    actual[:, 4000:] += 1
    wrong = wrong_elements(actual, expected, LIMIT)
    began = time.process_time()
    told = diagnose(Case(actual, expected, wrong, factor=20.0))
    assert time.process_time() - began < 20
    assert [each.symptom for each in told] == [S.OFFSET, S.TAIL]
