"""Sparse tasks fail kernels that are wrong in ways which only sparse matrices have."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.catalog.judging import Case, drawn_cases, exactly
from tests.unit.catalog.test_tasks import SPARSE

OPERATORS = sorted(name for name in SPARSE if name.startswith("spm"))
PADDED = [name for name in OPERATORS if "_ell" in name]
COORDINATES = [name for name in OPERATORS if "_coo" in name]
NARROW = [name for name in OPERATORS if name.endswith("_bf16")]
SEEDS = [1]
PARTS = 16


def drawn(case: Case) -> dict[str, Any]:
    """The arguments of the reference by name."""
    call = case.draw(SEEDS[0])
    return dict(zip(call.names, call.arguments, strict=True))


def fails(case: Case, **changed: Tensor) -> bool:
    """Does the right result of changed inputs fail as the result of the drawn ones?"""
    arguments = drawn(case) | changed
    result = exactly(case.function())(*arguments.values())
    return not case.passes(result, SEEDS[0])


@pytest.mark.parametrize("case", drawn_cases(*PADDED), ids=str)
def test_a_kernel_that_takes_padding_for_column_zero_fails(case: Case) -> None:
    assert fails(case, col_ids=drawn(case)["col_ids"].clamp(min=0))


@pytest.mark.parametrize("case", drawn_cases(*PADDED), ids=str)
def test_a_kernel_that_stops_at_the_first_padding_fails(case: Case) -> None:
    columns = drawn(case)["col_ids"]
    reached = (columns >= 0).int().cumprod(1).bool()
    if columns.shape[0] > 1:
        assert fails(case, col_ids=torch.where(reached, columns, -1))


@pytest.mark.parametrize("case", drawn_cases(*COORDINATES), ids=str)
def test_elements_come_in_both_orders(case: Case) -> None:
    """So that a kernel that trusts in sorted rows fails, and one that gains by them may."""
    rows = drawn(case)["row_indices"]
    assert bool((rows.diff() >= 0).all()) != bool(case.workload.parameters["shuffled"])


@pytest.mark.sampled(30)
@pytest.mark.parametrize("case", drawn_cases(*OPERATORS), ids=str)
def test_a_kernel_that_leaves_empty_rows_as_they_are_fails(case: Case) -> None:
    arguments = drawn(case)
    ones = {
        name: torch.ones_like(arguments[name]) for name in ("values", "x", "X") if name in arguments
    }
    counts = exactly(case.function())(*(arguments | ones).values())
    result = exactly(case.function())(*arguments.values())
    if (counts == 0).any():
        assert not case.passes(torch.where(counts == 0, 1e-27, result), SEEDS[0])
    else:
        assert case.workload.parameters["rows"] == 1


@pytest.mark.parametrize("name", NARROW)
def test_sums_in_bfloat16_fail(name: str) -> None:
    """The bound is that of one rounding at the end, of a sum that was kept in float32."""
    assert any(not case.passes(_summed_in_bfloat16(case), SEEDS[0]) for case in drawn_cases(name))


def _summed_in_bfloat16(case: Case) -> Tensor:
    """The product in parts, rounded after each: about one element of a short row a part."""
    arguments = drawn(case)
    name = "X" if "X" in arguments else "x"
    total = torch.zeros(())
    for part in range(PARTS):
        only = torch.zeros_like(arguments[name])
        only[part::PARTS] = arguments[name][part::PARTS]
        total = (total + case.function()(*(arguments | {name: only}).values())).bfloat16()
    return total
