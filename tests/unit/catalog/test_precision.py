"""One precision lower, or added to what was there: no task lets that pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.problem import map_tensors
from tests.unit.catalog.judging import PRECISIONS, Case, drawn_cases, exactly
from tests.unit.catalog.test_tasks import NETWORKS, TUNED

pytestmark = pytest.mark.each_task

SCALAR_OUTPUT = {"dot_product", "cross_entropy"}
"""Tasks whose one number hits the bound by luck now and then: a kernel fails on most calls only."""


@pytest.mark.sampled(30)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", drawn_cases(*sorted(NETWORKS | TUNED)), ids=str)
def test_inputs_rounded_to_a_lower_precision_fail(case: Case, precision: str) -> None:
    """All else in float64, so that nothing but the rounding is seen."""
    change = PRECISIONS[precision]

    def kernel(*arguments: Any) -> Any:
        return exactly(case.function())(*(map_tensors(change, a) for a in arguments))

    if case.name in SCALAR_OUTPUT and case.direction is Direction.FORWARD:
        failed = [seed for seed in range(12) if case.fails(kernel, [seed])]
        assert len(failed) >= 6
    else:
        assert case.fails(kernel, [1])
        assert case.fails(kernel, [2])


@pytest.mark.parametrize("case", drawn_cases("dot_product"), ids=str)
def test_dot_product_that_adds_to_the_last_result(case: Case) -> None:
    before = torch.zeros(1)

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        before.add_(torch.dot(x, y))
        return before.clone()

    assert case.fails(kernel)
