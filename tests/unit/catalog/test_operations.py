"""Another operation in a network task's reference is far outside its tolerance.

Those that are left out alone are tried by the reports that `test_families` reads.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.data.task import Values
from gpu_runner.data.verdict import DeviceKind, Direction
from tests.unit.catalog.judging import Case, cases, drawn_cases, exactly, problem, task
from tests.unit.catalog.test_tasks import NAMES

Kernel = Callable[..., Any]
FAR = 30.0
"""Bounds by which the error of a mutant exceeds the tolerance at least."""
AGAIN = [pytest.mark.thorough]
"""On what is not the first workload."""
ON_HARD_VALUES = {("cross_entropy", "maximum")}
"""Typical values do not need it: `exp` of them neither overflows nor vanishes."""


def forward(name: str) -> list[Case]:
    return drawn_cases(name, direction=Direction.FORWARD)


def backward(name: str) -> list[Case]:
    return drawn_cases(name, direction=Direction.BACKWARD)


def mutants(table: dict[str, dict[str, Kernel]], direction: Direction) -> list[Any]:
    """A test case for each mutant on each CPU workload: `make test` tries it on the first."""
    return [
        pytest.param(case, kernel, id=f"{case}-{what}", marks=AGAIN[:place])
        for name, kernels in table.items()
        for what, kernel in kernels.items()
        for place, case in enumerate(_tried(name, what, direction))
    ]


def _tried(name: str, what: str, direction: Direction) -> list[Case]:
    if (name, what) not in ON_HARD_VALUES:
        return drawn_cases(name, direction=direction)
    found = cases(name, direction=direction)
    return [case for case in found if case.workload.values is Values.HARD]


def without(name: str, **changes: Callable[[Tensor], Any]) -> Kernel:
    """The forward reference of a task with some of its arguments changed."""
    reference = problem(name).function(Direction.FORWARD)
    signature = inspect.signature(reference)

    def kernel(*arguments: Any) -> Any:
        values = signature.bind(*arguments).arguments
        changed = {k: changes[k](v) if k in changes and v is not None else v
                   for k, v in values.items()}  # fmt: skip
        return reference(**changed)

    return kernel


def nothing(value: Any) -> Any:
    """Zeros in the place of a tensor, or 0 in that of a number."""
    return value * 0


def one(value: Tensor) -> Tensor:
    return torch.ones_like(value)


def no_batch_norm(*layers: str) -> Kernel:
    """The residual block with the named batch norms deleted."""
    changes: dict[str, Callable[[Tensor], Any]] = {}
    for layer in layers:
        changes |= {f"{layer}_weight": one, f"{layer}_var": one}
        changes |= {f"{layer}_bias": nothing, f"{layer}_mean": nothing}
    return without("resnet_block", **changes)


def loss_without_maximum(predictions: Tensor, targets: Tensor) -> Tensor:
    logs = predictions.float().exp().sum(1).log()
    return (logs - predictions.float()[torch.arange(len(targets)), targets]).mean()


def gradient_without_maximum(grad: Tensor, predictions: Tensor, targets: Tensor) -> Tensor:
    powers = predictions.float().exp()
    softmax = powers / powers.sum(1, keepdim=True)
    return (softmax - F.one_hot(targets, predictions.shape[1])) * grad / len(targets)


def _block(*arguments: Any) -> Tensor:
    """The residual block without its last rectifier."""
    values = inspect.signature(problem("resnet_block").function(Direction.FORWARD)).bind(*arguments)
    lifted = dict(values.arguments) | {"bn2_bias": values.arguments["bn2_bias"] + 1000}
    result: Tensor = problem("resnet_block").function(Direction.FORWARD)(**lifted) - 1000
    return result


def _without_first_tap(weights: Tensor) -> Tensor:
    changed = weights.clone()
    changed[:, :, 0, 0] = 0
    return changed


def _first_element(x: Tensor, weights: Tensor, biases: Tensor, grad: Tensor) -> Any:
    """Every window's gradient at its first element, whichever is the largest."""
    with torch.enable_grad():
        leaves = [v.requires_grad_() for v in (x, weights, biases)]
        sums = F.relu(F.conv2d(leaves[0], leaves[1], leaves[2]))
        rows, columns = grad.shape[2] * 2, grad.shape[3] * 2
        return torch.autograd.grad(sums[:, :, :rows:2, :columns:2], leaves, grad)


def _backward(name: str) -> Kernel:
    return problem(name).function(Direction.BACKWARD)


FORWARD: dict[str, dict[str, Kernel]] = {
    "layernorm": {
        "mean": lambda x, w, b, eps: (
            x * torch.rsqrt(x.var((1, 2, 3), correction=0, keepdim=True) + eps) * w + b
        ),
    },
    "conv_relu_pool": {
        "mean pooling": lambda x, w, b: F.avg_pool2d(F.relu(F.conv2d(x, w, b)), 2),
        "window of 1 x 2": lambda x, w, b: F.max_pool2d(F.relu(F.conv2d(x, w, b)), (1, 2), 2)[
            ..., : (x.shape[2] - w.shape[2] + 1) // 2, :
        ],
    },
    "cross_entropy": {
        "maximum": loss_without_maximum,
        "logarithm of the sum": lambda p, t: -p[torch.arange(len(t)), t].mean(),
        "target": lambda p, t: torch.logsumexp(p, 1).mean(),
        "mean": lambda p, t: F.cross_entropy(p, t, reduction="sum") * (len(t) != 1),
    },
    "linear": {
        "transposed bias": without("linear", biases=lambda b: b.flip(0)),
    },
    "max_pool": {
        "half of the window": lambda x: F.max_pool2d(x, (2, 1), 2)[..., : x.shape[3] // 2],
        "mean pooling": lambda x: F.avg_pool2d(x, 2),
    },
    "resnet_block": {
        "every batch norm": no_batch_norm("bn1", "bn2", "downsample_bn"),
        "relu": lambda *a: torch.where(_block(*a) > 0, _block(*a), -1.0),
    },
    "unet_conv2d": {
        "first tap": without("unet_conv2d", weights=_without_first_tap),
    },
}

BACKWARD: dict[str, dict[str, Kernel]] = {
    "llama_rmsnorm": {
        "projection": lambda g, x, w, eps: (
            g * w * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps),
            _backward("llama_rmsnorm")(g, x, w, eps)[1],
        ),
    },
    "conv_relu_pool": {
        "first element of a window": _first_element,
    },
    "cross_entropy": {
        "maximum": gradient_without_maximum,
        "one hot": lambda g, p, t: torch.softmax(p, 1) * g / len(t),
    },
    "max_pool": {
        "window": lambda x, g: torch.zeros_like(x).index_fill(3, torch.tensor([0]), 1.0),
        "mean pooling": lambda x, g: F.pad(
            F.interpolate(g / 4, scale_factor=2), (0, x.shape[3] % 2, 0, x.shape[2] % 2)
        ),
    },
}


def _worst(case: Case, kernel: Kernel) -> float:
    """The largest scaled error over a few calls; infinite for a NaN."""
    return max(
        comparison.scaled
        for seed in range(8)
        for comparison in case.judge(seed, exactly(kernel)(*case.draw(seed).arguments))
    )


@pytest.mark.parametrize(("case", "kernel"), mutants(FORWARD, Direction.FORWARD))
def test_a_forward_without_one_operation_fails(case: Case, kernel: Kernel) -> None:
    assert _worst(case, kernel) > FAR


@pytest.mark.parametrize(("case", "kernel"), mutants(BACKWARD, Direction.BACKWARD))
def test_a_backward_without_one_operation_fails(case: Case, kernel: Kernel) -> None:
    assert _worst(case, kernel) > FAR


def _last_on_ties(x: Tensor, grad: Tensor) -> Tensor:
    """Max pooling's gradient at the last of equal maxima."""
    result = torch.ops.aten.max_pool2d_with_indices_backward
    flipped = x.flip(2, 3)
    _, indices = F.max_pool2d(flipped, 2, return_indices=True)
    turned: Tensor = result(
        grad.flip(2, 3), flipped, [2, 2], [2, 2], [0, 0], [1, 1], False, indices
    )
    return turned.flip(2, 3)


@pytest.mark.parametrize("case", backward("max_pool"), ids=str)
def test_ties_go_to_the_first_maximum(case: Case) -> None:
    parameters = case.workload.parameters
    even = parameters["height"] % 2 == 0 and parameters["width"] % 2 == 0
    if even and parameters["height"] > 2:  # flipped windows of odd maps are other windows
        assert case.fails(exactly(_last_on_ties), [1])


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
