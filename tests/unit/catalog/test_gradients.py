"""Every backward reference is the gradient of its forward reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.problem import in_float64, outputs_of
from tests.unit.catalog.judging import Case, cases, problem, task
from tests.unit.catalog.test_tasks import NAMES

WITH_BACKWARD = [name for name in NAMES if Direction.BACKWARD in task(name).directions]
BACKWARD = cases(
    *(name for name in WITH_BACKWARD if task(name).dtype == "float32"), direction=Direction.BACKWARD
)
TABLES = {"cosines", "sines"}
"""Constants, of which nobody wants a gradient."""


@pytest.mark.sampled(50)
@pytest.mark.parametrize("case", BACKWARD, ids=str)
def test_backward_equals_autograd(case: Case) -> None:
    drawn = case.draw(5)
    values = {**drawn.values, **drawn.named}
    gradient = in_float64(values["grad_output"])
    inputs = _inputs(case, values)
    leaves = [v.requires_grad_() for n, v in inputs.items() if _is_real(v) and n not in TABLES]
    forward = problem(case.name).function(Direction.FORWARD)
    expected = torch.autograd.grad(forward(**inputs), leaves, gradient)
    actual = outputs_of(case.function()(*in_float64(drawn.arguments)))
    assert len(actual) == len(expected)
    for mine, autograd in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine, autograd, rtol=1e-9, atol=1e-12)


def _inputs(case: Case, values: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the forward function, by name, in float64."""
    forward = problem(case.name).draw(case.workload, Direction.FORWARD, 5, "cpu")
    return {name: in_float64(values[name]) for name in forward.names}


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
