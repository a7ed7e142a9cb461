"""The oracle's side of FlashInfer Trace: what is drawn, what is expected, and how close."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_runner.data.formats import read_task
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.engine.problem.compare import compare, limit_of
from gpu_runner.engine.problem.problem import Problem, ProblemError, load_problem, write_files
from tests import trace_files as make

Load = Callable[..., tuple[Task, Problem]]
FORWARD = Direction.FORWARD


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """The task of a definition with these workloads, and its problem."""

    def loaded(document: dict[str, Any], *workloads: dict[str, Any]) -> tuple[Task, Problem]:
        task = read_task(make.write_data_set(tmp_path, document, list(workloads))).task
        with write_files(task) as folder:
            return task, load_problem(task, Path(folder))

    return loaded


def _with(workload: Workload, **changes: object) -> Workload:
    return replace(workload, name="other", parameters={**workload.parameters, **changes})


def test_arguments_have_their_own_dtypes_and_captured_values(load: Load) -> None:
    task, problem = load(make.definition(), make.workload("u1"))
    drawn = problem.draw(task.workloads[0], FORWARD, 1, "cpu")
    x, rows, alpha = drawn.arguments
    assert isinstance(x, torch.Tensor)
    assert (x.dtype, tuple(x.shape)) == (torch.bfloat16, (8, 4))
    assert isinstance(rows, torch.Tensor)
    assert rows.tolist() == [2, 0, 2]
    assert alpha == 0.5
    assert torch.equal(problem.draw(task.workloads[0], FORWARD, 1, "cpu").arguments[0], x)
    assert not torch.equal(problem.draw(task.workloads[0], FORWARD, 2, "cpu").arguments[0], x)


def test_other_sizes_take_no_captured_values_and_break_no_constraint(load: Load) -> None:
    task, problem = load(make.definition(), make.workload("u1"))
    with pytest.raises(ProblemError, match="captured"):
        problem.draw(_with(task.workloads[0], n=9), FORWARD, 1, "cpu")
    task, problem = load(make.definition(constraints=["n > 8"]), make.workload("u1"))
    with pytest.raises(ProblemError, match="n > 8"):
        problem.draw(task.workloads[0], FORWARD, 1, "cpu")


def test_what_is_expected_is_not_rounded_and_a_kernel_may_round_once(load: Load) -> None:
    task, problem = load(make.definition(), make.workload("u1", alpha=_scalar(0.3)))
    workload = task.workloads[0]
    (expected,) = problem.expected(workload, FORWARD, 1, "cpu")
    assert not torch.equal(expected, expected.bfloat16().double())
    (scale,) = problem.scale(workload, FORWARD, 1, "cpu", (expected,)) or (None,)
    limit = limit_of(task, workload)
    right = compare(expected.bfloat16(), expected, limit, scale)
    assert right.mismatch is None
    assert right.absolute == (expected.bfloat16().double() - expected).abs().max()
    assert right.pointwise is not None
    assert 0 < right.pointwise < 2**-8
    assert compare((expected * 1.05).bfloat16(), expected, limit, scale).mismatch is not None


def test_a_definition_may_draw_and_return_by_name(load: Load) -> None:
    reference = (
        "import torch\n\n\ndef draw(axes, device):\n"
        "    return {'x': torch.full((axes['n'], axes['w']), float(axes['k']), device=device)}\n"
        "\n\ndef run(x):\n    return {'low': x - 1, 'high': x + 1}\n"
    )
    outputs = {name: make.tensor("float32", "n", "w") for name in ("high", "low")}
    inputs = {"x": make.tensor("float32", "n", "w")}
    document = make.definition(reference=reference, inputs=inputs, outputs=outputs)
    document |= {"custom_inputs_entrypoint": "draw", "constraints": []}
    entry = {"uuid": "u1", "axes": {"n": 2, "k": 3}, "inputs": {"x": {"type": "custom"}}}
    task, problem = load(document, entry)
    high, low = problem.expected(task.workloads[0], FORWARD, 1, "cpu")
    assert (high.unique().tolist(), low.unique().tolist()) == ([4.0], [2.0])


@pytest.mark.parametrize("returned", ["x, x", "None"])
def test_a_reference_returns_what_its_definition_says(load: Load, returned: str) -> None:
    reference = f"def run(x, rows, alpha):\n    return {returned}\n"
    task, problem = load(make.definition(reference=reference), make.workload("u1"))
    with pytest.raises(ProblemError, match="return"):
        problem.expected(task.workloads[0], FORWARD, 1, "cpu")


def _scalar(value: float) -> dict[str, object]:
    return {"type": "scalar", "value": value}
