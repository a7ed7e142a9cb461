"""robust-kbench folders as problems: what a kernel gets, and what is expected of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_runner.data.formats import load_task
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.compare import Limit, compare
from gpu_runner.engine.problem.problem import Problem, ProblemError, load_problem, outputs_of

FORWARD = """
import torch
import torch.nn.functional as F
from torch import nn

def forward_fn(x, weight, bias=None, eps=1e-5):
    return F.relu(x @ weight.T + bias) * (1 + eps)

class Model(nn.Module):
    def __init__(self, width: int = 6, out: int = 3):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out, width))
        self.bias = nn.Parameter(torch.randn(out))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, self.bias)

def get_inputs(rows: int = 5, width: int = 6):
    return [torch.randn(rows, width)]
"""
AUTOGRAD = """
class AutogradFunction(torch.autograd.Function):
    backward_fn = None

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight, bias)
        return forward_fn(x, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, bias = ctx.saved_tensors
        gx, gw, gb = AutogradFunction.backward_fn(grad_output, x, weight, bias)
        return gx, gw, gb
"""
Make = Callable[..., tuple[Problem, Any]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a task folder, load it, and return its problem and first workload."""

    def build(forward: str = FORWARD, backward: str | None = None, **config: Any) -> Any:
        configuration = {"single_input_configs": [{}], "single_init_configs": [{}], **config}
        (tmp_path / "func_forward.py").write_text(forward)
        (tmp_path / "config_forward.json").write_text(json.dumps(configuration))
        if backward is not None:
            (tmp_path / "func_backward.py").write_text(backward)
            (tmp_path / "config_backward.json").write_text(json.dumps(configuration))
        task = load_task(tmp_path)
        return load_problem(task, tmp_path), task.workloads[0]

    return build


def judged(problem: Any, workload: Any, direction: Direction, outputs: Any) -> float:
    """The largest scaled error of `outputs` on seed 1."""
    expected = problem.expected(workload, direction, 1, "cpu")
    scales = problem.scale(workload, direction, 1, "cpu", expected)
    tolerance = problem.task.tolerance
    length = problem.task.reduction_length(workload)
    limit = Limit.of(tolerance.constant, tolerance.growth, length)
    return max(
        compare(actual, wanted, limit, scale).scaled
        for actual, wanted, scale in zip(outputs_of(outputs), expected, scales, strict=True)
    )


def run(problem: Any, workload: Any, direction: Direction) -> Any:
    drawn = problem.draw(workload, direction, 1, "cpu")
    with torch.no_grad():
        return problem.function(direction)(*drawn.arguments)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("fn(x, self.weight, self.bias)", "x weight bias"),
        ("fn(x, self.weight, bias=self.bias, eps=0.5)", "x weight bias eps"),
        ("fn(x, self.weight, eps=0.5)", "x weight bias eps"),
    ],
)
def test_a_kernel_gets_what_the_model_passes(make: Make, call: str, names: str) -> None:
    text = FORWARD.replace("fn(x, self.weight, self.bias)", call)
    text = text if "bias" in call else text.replace("+ bias", "")
    problem, workload = make(
        text,
        single_input_configs=[{"rows": 2}],
        single_init_configs=[{"out": 7}],
        single_shared_configs=[{"width": 4}],
    )
    drawn = problem.draw(workload, Direction.FORWARD, 1, "cpu")
    x, weight, bias, *more = drawn.arguments
    assert drawn.names == tuple(names.split())
    assert more == ([0.5] if "eps" in names else [])
    assert [tuple(value.shape) for value in (x, weight)] == [(2, 4), (7, 4)]
    assert bias is None if "bias" not in call else tuple(bias.shape) == (7,)
    assert not x.requires_grad
    other = problem.draw(workload, Direction.FORWARD, 2, "cpu").arguments[0]
    again = problem.draw(workload, Direction.FORWARD, 1, "cpu").arguments[0]
    assert (torch.equal(x, again), torch.equal(x, other)) == (True, False)


def test_the_eager_reference_passes_and_a_coarser_one_fails(make: Make) -> None:
    problem, workload = make()
    output = run(problem, workload, Direction.FORWARD)
    assert judged(problem, workload, Direction.FORWARD, output) < 0.5
    coarse = output.to(torch.bfloat16).float()
    assert judged(problem, workload, Direction.FORWARD, coarse) > 10


def test_casts_to_float32_do_not_round_the_expected_output(make: Make) -> None:
    text = FORWARD.replace("F.relu(x", "F.relu(x.float().to(torch.float32)")
    problem, workload = make(text)
    (expected,) = problem.expected(workload, Direction.FORWARD, 1, "cpu")
    x, weight, bias = problem.draw(workload, Direction.FORWARD, 1, "cpu").arguments
    exact = torch.relu(x.double() @ weight.double().T + bias.double()) * (1 + 1e-5)
    assert expected.dtype is torch.float64
    assert torch.equal(expected, exact)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("return fn(x, self.weight, self.bias)", "return x", "does not call the function"),
        ("torch.randn(rows, width)", "torch.randn(rows, width, 1)[5]", "func_forward.py: IndexErr"),
        ("import torch\n", "import torch\nimport torch.none\n", "func_forward.py: ModuleNotF"),
    ],
)
def test_a_task_that_fails_says_where(make: Make, old: str, new: str, reason: str) -> None:
    def draw() -> None:
        problem, workload = make(FORWARD.replace(old, new, 1))
        problem.draw(workload, Direction.FORWARD, 1, "cpu")

    with pytest.raises(ProblemError, match=re.escape(reason)):
        draw()


# backward


def test_expected_gradients_are_those_of_the_reference(make: Make) -> None:
    problem, workload = make(backward=FORWARD + AUTOGRAD)
    drawn = problem.draw(workload, Direction.BACKWARD, 1, "cpu")
    assert drawn.names == ("grad_output", "x", "weight", "bias")
    gradient, x, weight, bias = (value.double() for value in drawn.arguments)
    masked = gradient * (x @ weight.T + bias > 0) * (1 + 1e-5)
    expected = problem.expected(workload, Direction.BACKWARD, 1, "cpu")
    for found, wanted in zip(expected, (masked @ weight, masked.T @ x, masked.sum(0)), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-13, atol=1e-13)
    function: Any = problem.function(Direction.BACKWARD)
    backward = function.prepare(drawn.arguments)  # only the gradients are left to time
    assert all(map(torch.equal, backward(), function(*drawn.arguments)))
    swapped = AUTOGRAD.replace("gx, gw, gb = Auto", "gb, gx, gw = Auto")
    problem, workload = make(backward=FORWARD + swapped)
    shapes = [tuple(t.shape) for t in problem.expected(workload, Direction.BACKWARD, 1, "cpu")]
    assert shapes == [(3,), (5, 6), (3, 6)]


def test_the_eager_backward_passes_and_a_wrong_one_fails(make: Make) -> None:
    problem, workload = make(backward=FORWARD + AUTOGRAD)
    gradients = run(problem, workload, Direction.BACKWARD)
    assert judged(problem, workload, Direction.BACKWARD, gradients) < 0.5
    wrong = (gradients[0], gradients[1], gradients[2] * 1.001)
    assert judged(problem, workload, Direction.BACKWARD, wrong) > 1


@pytest.mark.parametrize(
    ("returned", "count"),
    [
        ("return AutogradFunction.backward_fn(grad_output, x, weight, bias)", 3),
        ("return (*AutogradFunction.backward_fn(grad_output, x, weight), None)", 2),
        (
            "g = AutogradFunction.backward_fn(grad_output, x, weight, bias)\n"
            "        return g[0], g[1], g[2]",
            3,
        ),
        ("g = AutogradFunction.backward_fn(grad_output, weight)\n        return g, None, None", 1),
        ("(g,) = AutogradFunction.backward_fn(grad_output, bias)\n        return None, None, g", 1),
    ],
)
def test_ways_to_return_gradients(make: Make, returned: str, count: int) -> None:
    start, _, _ = AUTOGRAD.partition("        gx, gw, gb =")
    problem, workload = make(backward=FORWARD + start + "        " + returned + "\n")
    expected = problem.expected(workload, Direction.BACKWARD, 1, "cpu")
    assert len(expected) == count
    gradients = run(problem, workload, Direction.BACKWARD)
    assert judged(problem, workload, Direction.BACKWARD, gradients) < 0.5


def test_a_tuple_argument_stays_a_tuple(make: Make) -> None:
    text = AUTOGRAD.replace("backward_fn(grad_output, x,", "backward_fn(ctx.saved_tensors, x,")
    text = text.replace("x, weight, bias)\n        return gx", "grad_output)\n        return gx")
    problem, workload = make(backward=FORWARD + text)
    drawn = problem.draw(workload, Direction.BACKWARD, 1, "cpu")
    assert isinstance(drawn.arguments[0], tuple)
    assert [tuple(value.shape) for value in drawn.arguments[0]] == [(5, 6), (3, 6), (3,)]
    gradients = run(problem, workload, Direction.BACKWARD)
    assert judged(problem, workload, Direction.BACKWARD, gradients) < 0.5


def test_arguments_that_no_gradient_needs_may_be_missing(make: Make) -> None:
    linear = FORWARD.replace("F.relu(x @ weight.T + bias) * (1 + eps)", "x @ weight.T + bias")
    text = AUTOGRAD.replace(
        "backward_fn(grad_output, x, weight, bias)", "backward_fn(x, weight, grad_output)"
    )
    problem, workload = make(backward=linear + text)
    assert len(problem.draw(workload, Direction.BACKWARD, 1, "cpu").arguments) == 3
    gradients = run(problem, workload, Direction.BACKWARD)
    assert judged(problem, workload, Direction.BACKWARD, gradients) < 0.5


def test_the_eager_backward_works_in_a_process_that_never_drew(make: Make, tmp_path: Path) -> None:
    problem, workload = make(backward=FORWARD + AUTOGRAD)
    arguments = problem.draw(workload, Direction.BACKWARD, 1, "cpu").arguments
    fresh = load_problem(load_task(tmp_path), tmp_path)
    found = fresh.function(Direction.BACKWARD)(*arguments)
    assert all(map(torch.equal, found, problem.function(Direction.BACKWARD)(*arguments)))
    with pytest.raises(ProblemError, match="any workload"):
        fresh.function(Direction.BACKWARD)(*(value[:1] for value in arguments))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("return gx, gw, gb", "return gx * 2, gw, gb", "changes or drops a result"),
        ("return gx, gw, gb", "return gx, gw, None", "changes or drops a result"),
        ("return gx, gw, gb", "return gx, gw", "must return backward_fn's results"),
        (
            "        x, weight, bias = ctx",
            "        return None\n        x, weight, bias = ctx",
            "does not call",
        ),
        (
            "weight, bias)\n        return gx",
            "weight, bias=bias)\n        return gx",
            "positional arguments only",
        ),
    ],
)
def test_an_autograd_class_that_cannot_serve(make: Make, old: str, new: str, reason: str) -> None:
    problem, workload = make(backward=FORWARD + AUTOGRAD.replace(old, new, 1))
    with pytest.raises(ProblemError, match=reason):
        problem.draw(workload, Direction.BACKWARD, 1, "cpu")


NEAR_A_KINK = """
import torch
from torch import nn

def forward_fn(x, weight):
    return torch.relu(x * weight)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)

def get_inputs():
    x = torch.randn(64)
    x[NEAR] = 1e-9
    return [x]

class AutogradFunction(torch.autograd.Function):
    backward_fn = None

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return forward_fn(x, weight)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return AutogradFunction.backward_fn(grad_output, x, weight)
"""


@pytest.mark.parametrize(("near", "passes"), [("7", True), ("0:0", False)])
def test_rounding_may_decide_a_rectifier_only_where_its_argument_is_nearly_zero(
    make: Make, near: str, passes: bool
) -> None:
    text = NEAR_A_KINK.replace("NEAR", near)
    problem, workload = make(text, text)
    drawn = problem.draw(workload, Direction.BACKWARD, 1, "cpu")
    gradient, x, _ = drawn.arguments
    gradients: list[Tensor] = [g.clone() for g in run(problem, workload, Direction.BACKWARD)]
    gradients[0][7] = gradient[7] * (x[7] <= 0)  # the other way round
    assert (judged(problem, workload, Direction.BACKWARD, gradients) <= 1) is passes
    gradients[0][8] += 1.0
    assert judged(problem, workload, Direction.BACKWARD, gradients) > 1
