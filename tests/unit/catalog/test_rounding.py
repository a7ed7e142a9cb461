"""Where rounding decides what a gradient flows to, either choice passes; lower precisions fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.problem import map_tensors
from tests.unit.catalog.judging import PRECISIONS, Case, cases, drawn_cases, exactly, problem, task
from tests.unit.catalog.test_tasks import NETWORKS, TUNED

CHOOSING = ("linear_relu", "conv_relu_pool")
EPS = torch.finfo(torch.float32).eps


def backward(name: str) -> list[Case]:
    return cases(name, direction=Direction.BACKWARD)


def linear_relu(size: float, g: Tensor, x: Tensor, w: Tensor, b: Tensor) -> Any:
    """The backward of `linear_relu` with noise of `size` times the sums' magnitude."""
    grad = g * (_noisy(F.linear(x, w, b), size) > 0)
    return grad @ w, grad.t() @ x, grad.sum(0)


def conv_relu_pool(size: float, x: Tensor, w: Tensor, b: Tensor, g: Tensor) -> Any:
    """The same for `conv_relu_pool`."""
    with torch.enable_grad():
        leaves = [v.requires_grad_() for v in (x, w, b)]
        sums = F.conv2d(leaves[0], leaves[1], leaves[2])
        seen = _noisy(sums.detach(), size)
        _, indices = F.max_pool2d(F.relu(seen), 2, return_indices=True)
        chosen = (sums * (seen > 0)).flatten(2).gather(2, indices.flatten(2))
        return torch.autograd.grad(chosen, leaves, g.flatten(2))


def _noisy(sums: Tensor, size: float) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(sums.shape, generator=generator, dtype=sums.dtype).clamp(-2, 2)
    return sums + noise * size * sums.square().mean().sqrt()


KERNELS = {"linear_relu": linear_relu, "conv_relu_pool": conv_relu_pool}
ROUNDING = {"linear_relu": 20 * EPS, "conv_relu_pool": 4 * EPS}
"""Noise that rounding might explain, for sums of 1600 and of 9 products."""


def _differs(case: Case, size: float, seed: int) -> bool:
    """Does noise of that size change the exact gradient at all?"""
    arguments = case.draw(seed).arguments
    kernel = exactly(KERNELS[case.name])
    pairs = zip(kernel(size, *arguments), kernel(0.0, *arguments), strict=True)
    return any(not torch.equal(noisy, plain) for noisy, plain in pairs)


@pytest.mark.parametrize("name", CHOOSING)
def test_either_choice_passes_where_rounding_decides(name: str) -> None:
    case, size = backward(name)[0], ROUNDING[name]
    seeds = [seed for seed in range(120) if _differs(case, size, seed)]
    assert seeds
    for seed in seeds:
        result = exactly(KERNELS[name])(size, *case.draw(seed).arguments)
        assert case.passes(result, seed)


@pytest.mark.parametrize("name", CHOOSING)
def test_a_choice_that_rounding_does_not_explain_fails(name: str) -> None:
    case, size = backward(name)[0], 1e-3
    seeds = [seed for seed in range(4) if _differs(case, size, seed)]
    assert seeds
    for seed in seeds:
        result = exactly(KERNELS[name])(size, *case.draw(seed).arguments)
        assert not case.passes(result, seed)


@pytest.mark.parametrize("name", CHOOSING)
def test_bounds_are_wide_at_few_elements_only(name: str) -> None:
    wide = elements = 0
    for case in backward(name):
        key = (case.workload, case.direction, 1, "cpu")
        scales = problem(name).scale(*key, problem(name).expected(*key))
        assert scales is not None
        wide += sum(int((scale > 1e3 * scale.median()).sum()) for scale in scales)
        elements += sum(scale.numel() for scale in scales)
    assert wide < 0.05 * elements


@pytest.mark.parametrize("name", CHOOSING)
def test_the_reference_knows_its_tolerance(name: str) -> None:
    """It widens bounds in units of the tolerance's constant, which stands in task.toml."""
    names = getattr(problem(name).function(Direction.FORWARD), "__globals__", {})
    assert task(name).tolerance.constant == names["LOOSEST"]


SCALAR_OUTPUT = {"dot_product", "cross_entropy"}
"""Tasks whose one number hits the bound by luck now and then: a kernel fails on most calls only."""


@pytest.mark.each_task
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


@pytest.mark.each_task
@pytest.mark.parametrize("case", drawn_cases("dot_product"), ids=str)
def test_dot_product_that_adds_to_the_last_result(case: Case) -> None:
    before = torch.zeros(1)

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        before.add_(torch.dot(x, y))
        return before.clone()

    assert case.fails(kernel)
