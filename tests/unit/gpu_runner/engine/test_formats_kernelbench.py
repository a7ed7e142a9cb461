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
from gpu_runner.engine.problem.compare import Limit, compare
from gpu_runner.engine.problem.problem import ProblemError, load_problem, outputs_of
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
        (
            "",
            "g = torch.Generator().manual_seed(seed=7)\n"
            "    return [torch.rand(4, n, generator=g) for n in (8, 2)]",
        ),
        ("", "np.random.seed(3)\n    return [torch.tensor(np.random.rand(4, n)) for n in (8, 2)]"),
        (
            "",
            "r = np.random.default_rng()\n"
            "    return [torch.tensor(r.random((4, n))) for n in (8, 2)]",
        ),
        ("", "random.seed(1)\n    return [torch.full((4, n), random.random()) for n in (8, 2)]"),
        # a generator of the module's own
        (
            "torch.Generator().manual_seed(0)",
            "return [torch.rand(4, n, generator=own) for n in (8, 2)]",
        ),
        ("np.random.default_rng(0)", "return [torch.tensor(own.random((4, n))) for n in (8, 2)]"),
        ("np.random.RandomState(0)", "return [torch.tensor(own.rand(4, n)) for n in (8, 2)]"),
        ("random.Random(0)", "return [torch.full((4, n), own.random()) for n in (8, 2)]"),
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


def test_a_number_decides_for_the_model_that_it_makes(make: Make) -> None:
    problem, workload = make(PROBLEM)
    drawn = problem.draw(workload, FORWARD, 1, "cpu")
    function = problem.function(FORWARD)
    (result,) = outputs_of(function(*drawn.arguments))
    twice = list(drawn.arguments)
    twice[drawn.names.index("scale")] = 1.0
    assert torch.equal(outputs_of(function(*twice))[0], 2 * result)
    assert torch.equal(outputs_of(function(*drawn.arguments))[0], result)
    problem, workload = make(PROBLEM.replace("self.norm", "self.batch_norm"))  # like a function
    arguments = problem.draw(workload, FORWARD, 1, "cpu").arguments
    assert problem.function(FORWARD)(*arguments).shape == (4, 2)


def test_the_eager_model_passes_and_a_wrong_one_fails(make: Make) -> None:
    problem, workload = make(PROBLEM)
    drawn = problem.draw(workload, FORWARD, 1, "cpu")
    with torch.no_grad():
        (output,) = outputs_of(problem.function(FORWARD)(*drawn.arguments))
    (expected,) = problem.expected(workload, FORWARD, 1, "cpu")
    (scale,) = problem.scale(workload, FORWARD, 1, "cpu", (expected,))
    assert expected.dtype is torch.float64
    tolerance = problem.task.tolerance
    limit = Limit.of(tolerance.constant, tolerance.growth, problem.task.reduction_length(workload))
    assert compare(output, expected, limit, scale).scaled < 0.5
    assert compare(output.bfloat16().float(), expected, limit, scale).scaled > 1
    assert compare(torch.zeros_like(output), expected, limit, scale).mismatch is not None


def test_integer_outputs_and_inputs(make: Make) -> None:
    text = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, k):
        return torch.argmax(x, dim=k)
def get_inputs():
    return [torch.rand(4, 8), 1]
def get_init_inputs():
    return []
"""
    problem, workload = make(text)
    drawn = problem.draw(workload, FORWARD, 1, "cpu")
    assert (drawn.names, drawn.arguments[1]) == (("x", "k"), 1)
    expected = problem.expected(workload, FORWARD, 1, "cpu")
    (scale,) = problem.scale(workload, FORWARD, 1, "cpu", expected)
    assert expected[0].dtype is torch.int64
    assert compare(drawn.arguments[0].argmax(1), expected[0], Limit(1.0), scale).mismatch is None


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("import torch\n", "import torch\nimport torch.no_such_module\n", "ModuleNotFoundError"),
        ("torch.rand(4, 8)", "torch.rand(4, -8)", "RuntimeError"),
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
        ("import torch.nn.functional as fn", "fn.alpha_dropout(out, training=True)"),
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


SIZED = """
import torch
from torch import nn

rows, width = 12, 8
shape = (rows, width)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.scale

def get_inputs():
    return [torch.rand(shape)]

def get_init_inputs():
    return []
"""


def test_a_workload_sets_the_sizes_that_get_inputs_sees(make: Make) -> None:
    problem, own = make(SIZED)
    function = problem.function(FORWARD)
    for shape in [(11, 7), (6, 8), (12, 8)]:
        workload = replace(own, name=str(shape), parameters={"shape": list(shape)})
        drawn = problem.draw(workload, FORWARD, 1, "cpu")
        assert tuple(drawn.arguments[0].shape) == shape
        (expected,) = problem.expected(workload, FORWARD, 1, "cpu")
        assert torch.equal(outputs_of(function(*drawn.arguments))[0].double(), expected)
    assert own.parameters == {}


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
