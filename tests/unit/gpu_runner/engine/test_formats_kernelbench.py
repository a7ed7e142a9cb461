"""KernelBench files as problems: inputs, then weights, then numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_runner.data.formats import load_task
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.problem import ProblemError, load_problem
from gpu_runner.engine.runner.returned import returned_tensors

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width, heads, scale, mode, shape):
        super().__init__()
        self.project = nn.Linear(width, heads)
        self.norm = nn.BatchNorm1d(heads)
        self.drop = nn.Dropout(0.5)
        self.state = torch.randn(heads)
        self.scale = scale

    def forward(self, x, mask):
        out = self.drop(self.norm(self.project(x))) * mask + self.state
        self.state = out.mean(0)
        return out * self.scale

def get_inputs():
    return [torch.rand(4, 8), torch.rand(4, 2)]

def get_init_inputs():
    return [8, 2, 0.5, "fast", (2, 3)]
"""
FORWARD = Direction.FORWARD
Make = Callable[[str], tuple[Any, Any]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a problem file, load it, and return its problem and its workload."""

    def build(text: str) -> tuple[Any, Any]:
        (tmp_path / "1_Problem.py").write_text(text)
        task = load_task(tmp_path / "1_Problem.py")
        return load_problem(task, tmp_path), task.workloads[0]

    return build


def test_the_order_of_arguments(make: Make) -> None:
    problem, workload = make(PROBLEM)
    drawn = problem.draw(workload, FORWARD, 1, "cpu")
    weights = "project.weight project.bias norm.weight norm.bias norm.running_mean norm.running_var"
    names = f"x mask {weights} state width heads scale shape"
    assert drawn.names == tuple(names.split())
    assert drawn.arguments[-4:] == (8, 2, 0.5, (2, 3))
    assert tuple(drawn.arguments[2].shape) == (2, 8)


def test_draws_follow_from_the_seed(make: Make) -> None:
    problem, workload = make(PROBLEM)
    first = problem.draw(workload, FORWARD, 1, "cpu").arguments[:4]
    other = problem.draw(workload, FORWARD, 2, "cpu").arguments[:4]
    again = problem.draw(workload, FORWARD, 1, "cpu").arguments[:4]
    assert all(map(torch.equal, first, again))
    assert not any(map(torch.equal, first, other))


@pytest.mark.parametrize(
    ("own", "inputs"),
    [
        ("", "torch.manual_seed(0)\n    return [torch.rand(4, n) for n in (8, 2)]"),
        ("", "np.random.seed(3)\n    return [torch.tensor(np.random.rand(4, n)) for n in (8, 2)]"),
        ("", "random.seed(1)\n    return [torch.full((4, n), random.random()) for n in (8, 2)]"),
        # a generator of the module's own
        (
            "torch.Generator().manual_seed(0)",
            "return [torch.rand(4, n, generator=own) for n in (8, 2)]",
        ),
        ("np.random.default_rng(0)", "return [torch.tensor(own.random((4, n))) for n in (8, 2)]"),
    ],
)
def test_inputs_are_new_whatever_the_file_seeds(make: Make, own: str, inputs: str) -> None:
    text = PROBLEM.replace("return [torch.rand(4, 8), torch.rand(4, 2)]", inputs)
    assert text != PROBLEM
    text = f"import random\nimport numpy as np\nimport torch\nown = {own or None}\n{text}"
    test_draws_follow_from_the_seed(lambda _: make(text))


def test_a_dictionary_is_its_values_in_order(make: Make) -> None:
    text = PROBLEM.replace("return out * self.scale", 'return {"b": out, "a": (out.sum(), None)}')
    problem, workload = make(text)
    outputs = problem.expected(workload, FORWARD, 1, "cpu")
    assert [tuple(each.shape) for each in outputs] == [(4, 2), ()]
    drawn = problem.draw(workload, FORWARD, 1, "cpu")
    returned = returned_tensors(problem.function(FORWARD)(*drawn.arguments), "cpu")
    assert [each.shape for each in returned] == [each.shape for each in outputs]


def test_the_function_reads_nothing_but_its_arguments(make: Make, tmp_path: Path) -> None:
    problem, workload = make(PROBLEM)
    arguments = problem.draw(workload, FORWARD, 1, "cpu").arguments
    before = [value.clone() for value in arguments[:9]]
    with torch.no_grad():
        first = problem.function(FORWARD)(*arguments)
        problem.draw(workload, FORWARD, 2, "cpu")  # other weights, and the state has moved on
        again = problem.function(FORWARD)(*arguments)
        x, mask, weight, bias, gain, shift = arguments[:6]
        hidden = x @ weight.T + bias
        normal = (hidden - hidden.mean(0)) / (hidden.var(0, unbiased=False) + 1e-5).sqrt()
        wanted = ((normal * gain + shift) * mask + arguments[8]) * 0.5
        never_drew = load_problem(load_task(tmp_path / "1_Problem.py"), tmp_path)
        assert torch.equal(first, never_drew.function(FORWARD)(*arguments))
    assert torch.equal(first, again)
    torch.testing.assert_close(first, wanted, rtol=1e-4, atol=1e-5)
    assert all(map(torch.equal, before, arguments[:9]))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("import torch\n", "import torch\nimport torch.no_such_module\n", "ModuleNotFoundError"),
        ("nn.Linear(width, heads)", "nn.Linear(width)", "TypeError"),
        ("torch.rand(4, 2)]", "torch.fft.fft(torch.rand(4, 2))]", "must hold real numbers"),
    ],
)
def test_a_file_that_fails_says_why(make: Make, old: str, new: str, reason: str) -> None:
    def draw() -> None:
        problem, workload = make(PROBLEM.replace(old, new, 1))
        problem.draw(workload, FORWARD, 1, "cpu")

    with pytest.raises(ProblemError, match=reason):
        draw()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("* mask", "* torch.rand_like(mask)", "the reference is random"),
        ("return out * self.scale", "return (out - out.mean(0)).mean(0)", "rounding noise"),
    ],
)
def test_an_output_that_cannot_be_judged_is_refused(
    make: Make, old: str, new: str, reason: str
) -> None:
    problem, workload = make(PROBLEM.replace(old, new))
    expected = problem.expected(workload, FORWARD, 1, "cpu")
    with pytest.raises(ProblemError, match=reason):
        problem.scale(workload, FORWARD, 1, "cpu", expected)


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from torch.nn import functional as F", "F.dropout(out, 0.5, training=self.training)"),
        ("from torch.nn.functional import dropout2d as drop", "drop(out[None], 0.5, True)[0]"),
        ("", "nn.functional.scaled_dot_product_attention(out, out, out, dropout_p=0.5)"),
        ("", "dropout(out, 1)"),
    ],
)
def test_dropout_called_as_a_function_is_off(make: Make, imports: str, call: str) -> None:
    text = PROBLEM.replace("import torch\n", f"import torch\n{imports}\n", 1)
    text += "\ndef dropout(x, k):\n    return x * k\n"  # the file's own, which stays as it is
    problem, workload = make(text.replace("return out * self.scale", f"return {call}"))
    expected = problem.expected(workload, FORWARD, 1, "cpu")
    assert problem.scale(workload, FORWARD, 1, "cpu", expected) is not None
    again = problem.expected(workload, FORWARD, 1, "cpu")
    assert torch.equal(expected[0], again[0])


NARROW = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x.float(), -1).to(torch.bfloat16)

def get_inputs():
    return [torch.randn(8, 64)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("dtype", "rounds"), [("bfloat16", False), ("float32", True)])
def test_casts_to_a_narrow_tasks_type_round_nothing_that_is_expected(
    tmp_path: Path, dtype: str, rounds: bool
) -> None:
    """A kernel may keep more digits than such a reference says; a float32 task means its casts."""
    (tmp_path / "1_Problem.py").write_text(NARROW)
    task = replace(load_task(tmp_path / "1_Problem.py"), dtype=dtype)
    problem, workload = load_problem(task, tmp_path), task.workloads[0]
    drawn = problem.draw(workload, FORWARD, 1, "cpu")
    assert drawn.arguments[0].dtype == getattr(torch, dtype)
    [expected] = problem.expected(workload, FORWARD, 1, "cpu")
    exact = torch.softmax(drawn.arguments[0].double(), -1)
    assert torch.allclose(expected.double(), exact, rtol=0.01, atol=0)
    assert torch.equal(expected.double(), exact) is not rounds
