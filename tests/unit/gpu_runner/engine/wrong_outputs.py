"""Outputs to look at: draws, what an output holds before a call, and what is found in one."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpu_runner.data.poison import HUGE
from gpu_runner.data.symptom import Finding, Symptom
from gpu_runner.engine.diagnosis import Case, diagnose
from gpu_runner.engine.problem.compare import Limit, compare, wrong_elements

LIMIT = Limit.of(16.0, 4.0, 1.0)
S = Symptom
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]

WORDS_LIMIT = 25
"""Words of a finding's sentence at most."""


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
