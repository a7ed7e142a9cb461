"""Honest float32 arithmetic passes every task, whatever its order of summation."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.unit.catalog.judging import Case, cases, exactly
from tests.unit.catalog.test_tasks import NETWORKS, TUNED

pytestmark = pytest.mark.each_task

SEEDS = range(4)

Sum = Callable[[Tensor], Tensor]
"""Sums the last dimension of a float32 tensor in some order of its own."""


@pytest.mark.sampled(30)
@pytest.mark.parametrize("case", cases(*sorted(NETWORKS | TUNED)), ids=str)
def test_the_reference_in_float32_passes_with_a_margin(case: Case) -> None:
    for seed in SEEDS:
        result = case.function()(*case.draw(seed).arguments)
        for comparison in case.judge(seed, result):
            assert comparison.mismatch is None
            assert comparison.scaled < 0.7


@pytest.mark.sampled(30)
@pytest.mark.parametrize("case", cases(*sorted(NETWORKS | TUNED)), ids=str)
def test_the_reference_itself_is_exact(case: Case) -> None:
    assert not case.fails(exactly(case.function()), seeds=[1])


def serial(terms: Tensor) -> Tensor:
    """One after the other: a cumulative sum rounds after each addition."""
    return torch.from_numpy(terms.numpy().cumsum(axis=-1, dtype="float32"))[..., -1]


def pairwise(terms: Tensor) -> Tensor:
    """As a balanced tree."""
    while terms.shape[-1] > 1:
        if terms.shape[-1] % 2:
            terms = torch.nn.functional.pad(terms, (0, 1))
        terms = terms[..., ::2] + terms[..., 1::2]
    return terms[..., 0]


def split(terms: Tensor, lanes: int = 32) -> Tensor:
    """Each of 32 lanes serially with a stride of 32, then a tree over the lanes."""
    missing = -terms.shape[-1] % lanes
    padded = torch.nn.functional.pad(terms, (0, missing))
    strided = padded.reshape(*terms.shape[:-1], -1, lanes).transpose(-1, -2)
    return pairwise(serial(strided))


def fused(a: Tensor, b: Tensor, lanes: int = 1024) -> Tensor:
    """Lanes of serial sums, with one rounding for a product and its addition together."""
    missing = -a.shape[-1] % lanes
    a, b = (torch.nn.functional.pad(v, (0, missing)).reshape(-1, lanes) for v in (a, b))
    total = torch.zeros(lanes)
    for x, y in zip(a.double(), b.double(), strict=True):
        total = (x * y + total.double()).float()
    return pairwise(total)


ORDERS: dict[str, Sum] = {"serial": serial, "pairwise": pairwise, "split": split}


@pytest.mark.sampled(14)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", cases("dot_product"), ids=str)
def test_dot_product_in_any_order(case: Case, order: str) -> None:
    assert not case.fails(lambda x, y: ORDERS[order](x * y).reshape(1), SEEDS)


@pytest.mark.parametrize("case", cases("dot_product"), ids=str)
def test_dot_product_with_fused_additions(case: Case) -> None:
    assert not case.fails(lambda x, y: fused(x, y).reshape(1), SEEDS)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", cases("matrix_mul"), ids=str)
def test_matrix_mul_in_any_order(case: Case, order: str) -> None:
    def multiply(a: Tensor, b: Tensor) -> Tensor:
        return ORDERS[order](a[:, None, :] * b.t().contiguous()[None, :, :])

    if case.workload.parameters["M"] <= 130:
        assert not case.fails(multiply, SEEDS[:2])


@pytest.mark.sampled(14)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", cases("rms_norm"), ids=str)
def test_rms_norm_in_any_order(case: Case, order: str) -> None:
    def normalise(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        mean = ORDERS[order](x * x) / x.numel()
        return x * (1 / torch.sqrt(mean + epsilon)) * weight + bias

    assert not case.fails(normalise, SEEDS)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", cases("softmax"), ids=str)
def test_softmax_in_any_order(case: Case, order: str) -> None:
    def softmax(x: Tensor) -> Tensor:
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return powers * (1 / ORDERS[order](powers)[:, None])

    assert not case.fails(softmax, SEEDS)


@pytest.mark.parametrize("case", cases("softmax"), ids=str)
def test_softmax_with_a_fast_exponential(case: Case) -> None:
    """exp(x) as a power of two of the rounded product x * log2(e), as fast device code has it."""

    def softmax(x: Tensor) -> Tensor:
        powers = torch.exp2((x - x.amax(-1, keepdim=True)) * 1.44269504)
        return powers / powers.sum(-1, keepdim=True)

    assert not case.fails(softmax, SEEDS)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", cases("spmv_csr"), ids=str)
def test_spmv_serially_and_in_lanes(case: Case) -> None:
    def multiply(order: Sum) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
        def run(values: Tensor, columns: Tensor, offsets: Tensor, x: Tensor) -> Tensor:
            terms = values * x[columns.long()]
            longest = int(offsets.diff().max())
            rows = torch.zeros(offsets.numel() - 1, longest)
            row = torch.repeat_interleave(offsets.diff())
            rows[row, torch.arange(terms.numel()) - offsets[row]] = terms
            return order(rows)

        return run

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference's: sparse tensors are in beta
        for order in ORDERS.values():
            assert not case.fails(multiply(order), SEEDS[:2])
