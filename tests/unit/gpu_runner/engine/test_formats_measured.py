"""Lengths of sums, kinks, and the momentum of normalisations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.engine.formats.gradients import Contrary, jumps
from gpu_runner.engine.formats.measured import traced
from gpu_runner.engine.formats.module import import_file, member
from gpu_runner.engine.problem.problem import ProblemError

X = torch.ones(6, 32)


@pytest.mark.parametrize(
    ("function", "length"),
    [
        (lambda: X + X, 1),
        (lambda: X @ X.T, 32),
        (X.sum, 192),
        (lambda: X.softmax(-1), 32),
        (lambda: X.cumsum(0), 6),
        (lambda: F.layer_norm(X, (32,)), 32),
        (lambda: F.batch_norm(X, None, None, training=True), 6),
        (lambda: F.conv1d(torch.ones(2, 4, 9), torch.ones(5, 4, 3)), 12),
        (lambda: F.max_pool1d(torch.ones(2, 4, 9), 3), 1),
        (lambda: torch.ones(1 << 20).sum(), 4096),
    ],
)
def test_the_longest_sum_is_seen(function: Callable[[], Tensor], length: int) -> None:
    _, found = traced(function)
    assert length <= found <= length + 2  # every trace starts with one


def test_lengths_add_up_but_not_without_end() -> None:
    def chain(count: int) -> Tensor:
        value = torch.ones(32, 32)
        for _ in range(count):
            value = value @ value / 32
        return value

    assert traced(lambda: chain(4))[1] == 4 * 32 + 1
    assert traced(lambda: chain(100))[1] == 16 * 32


def test_gradients_count_as_well() -> None:
    x = torch.ones(50, 4, requires_grad=True)
    weight = torch.ones(3, 4, requires_grad=True)
    _, length = traced(lambda: torch.autograd.grad((x @ weight.T).sum(), (x, weight)))
    assert length >= 50  # the weight's gradient sums over the rows


@pytest.mark.parametrize(
    "function",
    [
        lambda: torch.rand(3),
        lambda: torch.randn_like(X),
        lambda: F.dropout(X, 0.5),
        lambda: torch.empty(3).uniform_(),
    ],
)
def test_random_numbers_are_refused(function: Callable[[], Tensor]) -> None:
    with pytest.raises(ProblemError, match="random"):
        traced(function)
    traced(lambda: F.dropout(X, 0.5, training=False))


def rectified(value: Tensor) -> Callable[[], tuple[Tensor, ...]]:
    def gradients() -> tuple[Tensor, ...]:
        with torch.enable_grad():
            leaf = value.clone().requires_grad_()
            return torch.autograd.grad(torch.relu(leaf).sum(), leaf)

    return gradients


def test_a_value_at_a_kink_leaves_room_there_alone() -> None:
    value = torch.tensor([1.0, -1.0, 1e-12, 2.0], dtype=torch.float64)
    gradients = rectified(value)
    room = jumps(gradients, gradients(), 1e-6)
    assert room is not None
    assert room[0][2] >= 1
    assert torch.equal(room[0][[0, 1, 3]], torch.zeros(3, dtype=torch.float64))
    gradients = rectified(torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64))
    assert jumps(gradients, gradients(), 1e-6) is None


def test_jumps_that_cancel_are_told_apart() -> None:
    value = torch.full((64,), 1e-12, dtype=torch.float64)
    value[62:] = 1.0
    sign = torch.ones(64, dtype=torch.float64)
    sign[::2] = -1

    def gradients() -> tuple[Tensor, ...]:
        with torch.enable_grad():
            shared = torch.zeros((), dtype=torch.float64, requires_grad=True)
            return torch.autograd.grad(torch.relu(value + sign * shared).sum(), shared)

    assert gradients()[0] == 0  # and with all of them the other way round, 0 again
    room = jumps(gradients, gradients(), 1e-6)
    assert room is not None
    assert room[0] > 1


def test_a_pool_decides_the_other_way_where_two_are_close() -> None:
    value = torch.tensor([[[1.0, 1.0 + 1e-12, 3.0, 2.0]]], dtype=torch.float64)
    contrary = Contrary(1e-6)
    with contrary:
        leaf = value.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(F.max_pool1d(leaf, 2).sum(), leaf)
    assert gradient.flatten().tolist() == [1.0, 0.0, 1.0, 0.0]
    assert contrary.places == 2  # one that lost, one that won


@pytest.mark.parametrize(
    "call",
    [
        "F.batch_norm(x, mean, var, None, None, True, 0.5)",
        "F.batch_norm(x, mean, var, training=True)",
        "F.batch_norm(x, running_mean=mean, running_var=var, training=True, momentum=0.5)",
        "torch.nn.functional.instance_norm(x[None], mean, var)",
    ],
)
def test_normalisations_keep_the_statistics_that_they_are_given(tmp_path: Path, call: str) -> None:
    path = tmp_path / "task.py"
    path.write_text(
        "import torch\nimport torch.nn.functional as F\n"
        f"def run(x, mean, var):\n    return {call}\n"
    )
    run = member(import_file(path, "task_of_a_test"), "run")
    x, mean, var = torch.randn(4, 3) + 5, torch.zeros(3), torch.ones(3)
    if "instance" in call:
        x, mean, var = torch.randn(4, 3) + 5, torch.zeros(4), torch.ones(4)
    run(x, mean, var)
    assert not mean.any()
    assert torch.equal(var, torch.ones_like(var))
