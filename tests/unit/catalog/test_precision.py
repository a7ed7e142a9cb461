"""One precision lower, a part left out, or nothing computed at all: no task lets that pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.problem import map_tensors, outputs_of
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


@pytest.mark.parametrize("case", drawn_cases(*sorted(NETWORKS | TUNED)), ids=str)
def test_zeros_fail(case: Case) -> None:
    assert case.fails(
        lambda *args: [torch.zeros_like(o) for o in outputs_of(case.function()(*args))], [1]
    )


@pytest.mark.parametrize("case", drawn_cases(*sorted(NETWORKS | TUNED)), ids=str)
def test_a_tail_that_is_not_written_fails(case: Case) -> None:
    """The last element of each output holds what was there before: random bits, here one."""

    def kernel(*arguments: Any) -> list[Tensor]:
        outputs = [o.clone() for o in outputs_of(exactly(case.function())(*arguments))]
        for output in outputs:
            output.view(-1)[-1] += 1.0
        return outputs

    assert case.fails(kernel, [1])


@pytest.mark.parametrize("case", drawn_cases("dot_product"), ids=str)
@pytest.mark.parametrize("part", ["half", "tail"])
def test_dot_product_without_a_part(case: Case, part: str) -> None:
    n = int(case.workload.parameters["N"])
    kept = _kept(n, part)
    if kept < n:
        assert case.fails(exactly(lambda x, y: torch.dot(x[:kept], y[:kept]).reshape(1)))


@pytest.mark.parametrize("case", drawn_cases("dot_product"), ids=str)
def test_dot_product_that_adds_to_the_last_result(case: Case) -> None:
    before = torch.zeros(1)

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        before.add_(torch.dot(x, y))
        return before.clone()

    assert case.fails(kernel)


@pytest.mark.parametrize("case", drawn_cases("matrix_mul"), ids=str)
@pytest.mark.parametrize("part", ["half", "tail"])
def test_matrix_mul_without_a_part(case: Case, part: str) -> None:
    depth = int(case.workload.parameters["K"])
    kept = _kept(depth, part)
    if kept < depth:
        assert case.fails(exactly(lambda a, b: a[:, :kept] @ b[:kept]), [1])


@pytest.mark.parametrize("case", drawn_cases("rms_norm"), ids=str)
@pytest.mark.parametrize("part", ["half", "tail"])
def test_rms_norm_without_a_part(case: Case, part: str) -> None:
    n = int(case.workload.parameters["N"])
    kept = _kept(n, part)

    def normalise(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        mean = x[:kept].square().sum() / n
        return x * torch.rsqrt(mean + epsilon) * weight + bias

    if kept < n:
        assert case.fails(exactly(normalise))


@pytest.mark.parametrize("case", drawn_cases("softmax"), ids=str)
@pytest.mark.parametrize("part", ["half", "tail"])
def test_softmax_without_a_part(case: Case, part: str) -> None:
    columns = int(case.workload.parameters["C"])
    kept = _kept(columns, part)

    def softmax(x: Tensor) -> Tensor:
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return powers / powers[:, :kept].sum(-1, keepdim=True)

    if kept < columns:
        assert case.fails(exactly(softmax))


@pytest.mark.parametrize("case", drawn_cases("spmv_csr"), ids=str)
def test_spmv_without_the_last_element_of_each_row(case: Case) -> None:
    def kernel(values: Tensor, columns: Tensor, offsets: Tensor, x: Tensor) -> Tensor:
        cut = values.clone()
        cut[(offsets[1:] - 1)[offsets.diff() > 0].long()] = 0
        return torch.as_tensor(case.function()(cut, columns, offsets, x))

    assert case.fails(exactly(kernel), [1])


@pytest.mark.parametrize("case", drawn_cases("spmv_csr"), ids=str)
def test_spmv_that_does_not_write_empty_rows(case: Case) -> None:
    def kernel(values: Tensor, columns: Tensor, offsets: Tensor, x: Tensor) -> Tensor:
        result: Tensor = case.function()(values, columns, offsets, x)
        return torch.where(offsets.diff() == 0, 1e-27, result)

    offsets = case.draw(1).values["row_offsets"]
    if (offsets.diff() == 0).any():
        assert case.fails(exactly(kernel), [1])
    else:
        assert case.workload.parameters["rows"] == 1


def _kept(n: int, part: str) -> int:
    """Terms left of n: the first half, or what whole vectors of four cover."""
    return n // 2 if part == "half" else n - n % 4
