"""A Python submission is imported and called as its task says; how KernelBench's Model is made."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import py_compile
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_runner.data.formats import find_task, load_task
from gpu_runner.data.normal_form import NormalForm, normal_form
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Direction
from gpu_runner.data.wire import ErrorCode
from gpu_runner.engine.problem import arguments
from gpu_runner.engine.problem.problem import ProblemError, load_problem, outputs_of, write_files
from gpu_runner.engine.runner.module import Module, load_module, what_failed
from gpu_runner.engine.runner.returned import CallError

FORWARD = Direction.FORWARD
MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width, sizes, scale):
        super().__init__()
        self.first = nn.Linear(width, sizes[0])
        self.norm = nn.BatchNorm1d(sizes[0])
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(sizes[0], sizes[1])
        self.mask = torch.rand(sizes[1])
        self.scale = scale

    def forward(self, x):
        return self.last(self.drop(self.norm(self.first(x)))) * self.mask * self.scale

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return [8, (6, 5), 0.5]
"""
RENAMED = """
    def __init__(self, width, sizes, scale):
        super().__init__()
        assert type(sizes) is tuple
        self.w, self.b = nn.Parameter(torch.rand(6, 8)), nn.Parameter(torch.rand(6))
        self.g, self.h = nn.Parameter(torch.rand(6)), nn.Parameter(torch.rand(6))
        self.v, self.c = nn.Parameter(torch.rand(5, 6)), nn.Parameter(torch.rand(5))
        self.mask = torch.rand(5)
        self.scale = scale

    def forward(self, x):
        y = x @ self.w.t() + self.b
        y = (y - y.mean(0)) / (y.var(0, unbiased=False) + 1e-5).sqrt() * self.g + self.h
        return (y @ self.v.t() + self.c) * self.mask * self.scale
"""
Make = Callable[[str], Path]


@pytest.fixture
def module(tmp_path: Path) -> Make:
    """Write a submission's source."""

    def write(source: str) -> Path:
        path = tmp_path / "kbench_kernel.py"
        path.write_text(source)
        return path

    return write


def form_of(path: Path) -> NormalForm:
    return normal_form(path.read_text())


def _setup(task: Task) -> tuple[dict[str, Any], list[torch.Tensor], tuple[torch.Tensor, ...]]:
    """What a runner is told of the smallest workload, its inputs, and what is expected."""
    workload = task.workloads[-1]
    folder = write_files(task)
    problem = load_problem(task, Path(folder.name))
    drawn = problem.draw(workload, FORWARD, 1, "cpu")
    expected = problem.expected(workload, FORWARD, 1, "cpu")
    outputs = arguments.as_signature_says(task, expected)
    told = {
        "arguments": arguments.describe_arguments(task, workload, drawn, outputs),
        "outputs": arguments.describe_outputs(task, outputs),
    }
    made = getattr(problem, "model_call", None)
    told |= {} if made is None else {"model": made()}
    return json.loads(json.dumps(told)), arguments.input_tensors(task, workload, drawn), expected


def _close(task: Task, path: Path) -> bool:
    told, tensors, expected = _setup(task)
    for tensor in tensors:  # a model may not write to what it is given
        tensor.requires_grad_(False)
    before = [tensor.clone() for tensor in tensors]
    with torch.no_grad():
        prepared = Module(path, form_of(path), FORWARD).prepare(told, "cpu")
        results = outputs_of(prepared.function(*prepared.arrange(tensors)))
    assert all(map(torch.equal, before, tensors))
    pairs = zip(results, expected, strict=True)
    return all(torch.allclose(actual.double(), wanted, atol=1e-5) for actual, wanted in pairs)


@pytest.fixture
def kernelbench(tmp_path: Path) -> Task:
    (tmp_path / "model.py").write_text(MODEL)
    return load_task(tmp_path / "model.py")


def test_parameters_without_a_place_are_named(module: Make, kernelbench: Task) -> None:
    source = "from torch import nn\nclass ModelNew(nn.Module):\n    def __init__(self, *a):\n"
    path = module(f"{source}        super().__init__()\n        self.first = nn.Linear(8, 6)\n")
    told, _, _ = _setup(kernelbench)
    with pytest.raises(CallError, match=r"no place for .*'norm.weight' \[6\]") as raised:
        Module(path, form_of(path), FORWARD).prepare(told, "cpu")
    assert raised.value.code is ErrorCode.SYMBOL


HEAD = "import torch\nfrom torch import nn\n\nclass ModelNew(nn.Module):"
BEGIN = "        super().__init__()\n"
NONE = f"{BEGIN}        self.bias = nn.Parameter(torch.Tensor())\n"
WAYS = {
    "other names in the same order": HEAD + RENAMED,
    "an empty parameter, which stands for none": HEAD + RENAMED.replace(BEGIN, NONE, 1),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_model_of_its_own_gets_the_weights(module: Make, kernelbench: Task, way: str) -> None:
    assert _close(kernelbench, module(WAYS[way]))


def test_a_function_of_a_c_task_gets_all_but_the_outputs(module: Make) -> None:
    path = module("import torch\ndef forward(input, N, C):\n    return torch.softmax(input, -1)\n")
    assert _close(find_task("softmax"), path)


def test_a_model_that_needs_more_than_plain_values_says_so(module: Make, kernelbench: Task) -> None:
    text = MODEL.replace("[8, (6, 5), 0.5]", "[8, (6, 5), torch.tensor(0.5)]")
    task = dataclasses.replace(kernelbench, files={"model.py": text})
    told, _, _ = _setup(task)
    assert "Tensor is not a plain value" in told["model"]["reason"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\ndef forward(:\n", "line 2: invalid syntax"),
        ("\nimport no_such_package\n", "line 2: imports 'no_such_package', which isn't installed"),
        ("\n\nraise ValueError('mine')\n", "line 3: ValueError: mine"),
        ("def backward(x): pass\n", "exports no function 'forward' or class 'ModelNew'"),
    ],
)
def test_what_is_wrong_with_a_module_is_said(module: Make, source: str, words: str) -> None:
    path = module(source)
    with pytest.raises(CallError, match=words) as raised:
        Module(path, form_of(path), FORWARD)
    assert raised.value.code is ErrorCode.SYMBOL


def test_an_error_deep_inside_names_the_source_line(module: Make) -> None:
    path = module("import json  # of the library\n\n# what fails\njson.loads('{')\n")
    with pytest.raises(CallError, match="line 4: JSONDecodeError"):
        load_module(path, form_of(path))
    assert what_failed(RuntimeError(), path, form_of(path)) == "RuntimeError"


def test_the_given_text_runs_whatever_the_file_and_its_bytecode_say(module: Make) -> None:
    path = module("def forward(): return 'file'\n")
    cached = Path(importlib.util.cache_from_source(str(path)))
    py_compile.compile(
        str(path), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    assert load_module(path, NormalForm("def forward(): return 'given'\n")).forward() == "given"


FILE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, {parameters}):
        super().__init__()
        {init}

    def forward(self, x):
        return x * self.by

width = 8

def get_inputs():
    return [torch.ones(4, width)]

def get_init_inputs():
    {given}
"""
BY = "self.by = {}"
PAIR = "self.by = n * (2 if twice else 1)"
FORMS = {
    "a pair, as KernelBook has it": ("n, twice=False", PAIR, "return [[3], {'twice': True}]", 6),
    "by name alone": ("n, twice=False", PAIR, "return [[], {'n': 3, 'twice': True}]", 6),
    "nothing at all": ("n=5", BY.format("n"), "return [[], {}]", 5),
    "names behind arguments": ("n, twice=False", PAIR, "return [3, {'twice': True}]", 6),
    "a dictionary": ("n, twice=False", PAIR, "return {'n': 3, 'twice': True}", 6),
    "any keywords": ("n, **more", BY.format("n + more['m']"), "return [[3], {'m': 2}]", 5),
    "any arguments": ("*n, **m", BY.format("sum(n) + m['m']"), "return [[3, 1], {'m': 2}]", 6),
    "a list that is an argument": ("sizes", BY.format("sum(sizes)"), "return [[3, 4]]", 7),
    "a dictionary that is an argument": ("cfg", BY.format("cfg['by']"), "return [{'by': 3}]", 3),
    "a list and a dictionary that are": (
        "sizes, cfg", BY.format("sizes[0] * cfg['by']"), "return [[3, 4], {'by': 2}]", 6,
    ),
    "which only the model tells": (
        "sizes, cfg=None", BY.format("len(sizes) + sizes[0]"), "return [[3], {}]", 4,
    ),
}  # fmt: skip
"""Model's parameters, what it does with them, what get_init_inputs() says, the factor."""


def write(folder: Path, parameters: str, init: str, given: str) -> Path:
    path = folder / "1_Problem.py"
    path.write_text(FILE.format(parameters=parameters, init=init, given=given))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_model_is_made_in_every_form(tmp_path: Path, form: str) -> None:
    parameters, init, given, factor = FORMS[form]
    task = load_task(write(tmp_path, parameters, init, given))
    problem = load_problem(task, tmp_path)
    for workload in task.workloads:
        drawn = problem.draw(workload, Direction.FORWARD, 1, "cpu")
        assert drawn.names[0] == "x"
        (found,) = outputs_of(problem.function(Direction.FORWARD)(*drawn.arguments))
        assert torch.equal(found, drawn.arguments[0] * factor)
        fresh = load_problem(task, tmp_path).function(Direction.FORWARD)
        assert torch.equal(outputs_of(fresh(*drawn.arguments))[0], found)


@pytest.mark.parametrize(
    ("parameters", "given", "reason"),
    [
        ("n", "return [[3], {'bias': False}]", "get_init_inputs() returns: [[3], {'bias'"),
        ("n", "return [3, 4]", "Model doesn't accept what get_init_inputs() returns: [3, 4]"),
        ("n=1", "pass", "Model doesn't accept what get_init_inputs() returns: None"),
        # what only the oracle sees
        ("n, m", "return eval('3')", "Model doesn't accept what get_init_inputs() returns: 3"),
        ("n", "return eval('[[3], {}, 4]')", "Model doesn't accept what get_init_inputs() returns"),
    ],
)
def test_what_model_does_not_take_is_told(
    tmp_path: Path, parameters: str, given: str, reason: str
) -> None:
    task = load_task(write(tmp_path, parameters, "self.by = 1", given))
    with pytest.raises(ProblemError, match=re.escape(reason)):
        load_problem(task, tmp_path).draw(task.workloads[0], Direction.FORWARD, 1, "cpu")
