"""Hard inputs of the built-in tasks: of the same shapes, and like typical ones at a glance."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gpu_runner.data.task import Values
from gpu_runner.data.verdict import DeviceKind
from tests.unit.catalog.judging import Case, cases, task
from tests.unit.catalog.test_tasks import NAMES

HARD = [name for name in NAMES if task(name).has_hard_inputs]
GLANCES = 8
SMALL = 20.0
"""Larger than any of the values that `softmax` draws to be typical."""
MOST_HARD = 1 / 2


def hard_cases(name: str) -> list[Case]:
    return [case for case in cases(name) if case.workload.values is Values.HARD]


@pytest.mark.parametrize("name", HARD)
def test_they_have_the_shapes_and_types_of_typical_ones(name: str) -> None:
    pairs = {(case.workload.name, case.direction): case for case in cases(name)}
    for hard in hard_cases(name):
        usual = pairs.get((hard.workload.name.removesuffix("_hard"), hard.direction))
        if usual is not None:
            a, b = (case.draw(1) for case in (usual, hard))
            assert a.names == b.names
            described = [[_described(value) for value in each.arguments] for each in (a, b)]
            assert described[0] == described[1]


def _described(value: object) -> object:
    return (value.shape, value.dtype) if isinstance(value, Tensor) else value


@pytest.mark.parametrize("name", HARD)
def test_public_workloads_may_have_them(name: str) -> None:
    data = task(name)
    for direction in data.directions:
        for workload in data.workloads_for(DeviceKind.CPU, direction, hidden=False):
            assert Values.HARD in data.other_values(workload, DeviceKind.CPU, direction)


@pytest.mark.parametrize("name", ["softmax", "softmax_bf16"])
def test_most_rows_are_typical(name: str) -> None:
    for case in hard_cases(name):
        (logits,) = case.draw(1).arguments
        far = (logits.abs() > SMALL).any(-1)
        assert 0 < far.double().mean() <= MOST_HARD


def without_maximum(looks: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A softmax that takes the maximum off the rows alone in which it saw a large value."""

    def softmax(logits: Tensor) -> Tensor:
        x = logits.float()
        large = looks(x).abs().amax(-1, keepdim=True) > SMALL
        powers = torch.exp(x - torch.where(large, x.amax(-1, keepdim=True), 0.0))
        return (powers / powers.sum(-1, keepdim=True)).to(logits.dtype)

    return softmax


@pytest.mark.parametrize("name", ["softmax", "softmax_bf16"])
def test_a_few_values_do_not_tell_them(name: str) -> None:
    """Whoever looks at few values of each row, at both ends, and skips the rest is wrong."""

    def glance(x: Tensor) -> Tensor:
        some = x[..., :: max(1, x.shape[-1] // GLANCES)]
        return torch.cat((some, x[..., -1:]), -1)

    for case in hard_cases(name):
        assert case.fails(without_maximum(glance))
        assert not case.fails(without_maximum(lambda x: x))
