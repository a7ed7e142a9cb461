"""Model is made of what get_init_inputs() gives, in KernelBench's form or KernelBook's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from gpu_runner.data.formats import load_task
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.problem import ProblemError, load_problem, outputs_of

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
        ("n", "return [[3], {'bias': False}]", "gives what Model does not take: [[3], {'bias'"),
        ("n", "return [3, 4]", "gives what Model does not take: [3, 4]"),
        ("n=1", "pass", "gives what Model does not take: None"),
        # what only the oracle sees
        ("n, m", "return eval('3')", "gives what Model does not take: 3"),
        ("n", "return eval('[[3], {}, 4]')", "gives what Model does not take"),
    ],
)
def test_what_model_does_not_take_is_told(
    tmp_path: Path, parameters: str, given: str, reason: str
) -> None:
    task = load_task(write(tmp_path, parameters, "self.by = 1", given))
    with pytest.raises(ProblemError, match=re.escape(reason)):
        load_problem(task, tmp_path).draw(task.workloads[0], Direction.FORWARD, 1, "cpu")
