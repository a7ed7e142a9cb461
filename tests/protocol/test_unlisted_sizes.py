"""A kernel that knows the listed sizes, and is slow on others, leads no board."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.scores import is_tuned, score
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

CATALOG = Path(__file__).parents[2] / "tasks_app" / "catalog"
OTHERS = ("dot_product", "layernorm", "linear_relu", "matrix_mul")
TASKS = ["softmax", *(pytest.param(name, marks=pytest.mark.thorough) for name in OTHERS)]


def general(task: Task) -> str:
    return (CATALOG / task.name / "kernels" / "good.cpp").read_text()


def tuned(task: Task) -> str:
    """The general kernel, which works four times elsewhere."""
    listed = task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=False)
    known = " || ".join(
        f"({' && '.join(f'{name} == {value}' for name, value in each.parameters.items())})"
        for each in listed
    )
    names = ", ".join(parameter.name for parameter in task.c_signature.parameters)
    return (
        f"#define {task.name} as_it_was\n{general(task)}\n#undef {task.name}\n"
        f'extern "C" {task.signature} {{\n'
        f"  const int times = {known} ? 1 : 4;\n"
        f"  for (int time = 0; time < times; ++time) as_it_was({names});\n}}\n"
    )


def ranked(task: Task, source: str, folder: Path) -> EvaluationResult:
    request = EvaluationRequest(
        evaluation_id="unlisted",
        task=task,
        solution=Solution(language=Language.CPP, source=source),
        mode=Mode.RANKED,
        device="cpu",
    )
    config = SupervisorConfig(kind=DeviceKind.CPU, device="cpu", cache_folder=folder)
    return evaluate(request, config)


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
@pytest.mark.parametrize("name", TASKS)
def test_who_knows_the_listed_sizes_alone_scores_less(name: str, tmp_path: Path) -> None:
    task = find_task(name)
    honest, knowing = (ranked(task, make(task), tmp_path) for make in (general, tuned))
    assert honest.verdict is knowing.verdict is Verdict.CORRECT
    assert knowing.speedups["best"] == pytest.approx(honest.speedups["best"], rel=0.5)
    halves = [(each.speedups["best"], each.unlisted_speedups["best"]) for each in (honest, knowing)]
    assert [is_tuned(*each) for each in halves] == [False, True]
    first, second = (score(*each) or 0.0 for each in halves)
    assert first > 1.3 * second
    assert all(w.measurement is None for w in honest.workloads if w.hidden and not w.baselines)
