"""Wrong kernels that references give: each looks like what it is, or like nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.symptom import Symptom
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.engine.oracle.oracle import explain
from gpu_runner.engine.problem.problem import load_problem, write_files
from gpu_runner.engine.soundness.mutants import Call, mutants_of

LOOKS = {
    "zeros": {Symptom.ZEROS},
    "the mean of the result everywhere": {Symptom.REPEATED},
    "the other sign": {Symptom.SIGN},
    "half as much": {Symptom.FACTOR},
    "transposed": {Symptom.TRANSPOSED, Symptom.REVERSED},
    "in reverse order": {Symptom.REVERSED, Symptom.PERMUTED},
    "off by one element": {Symptom.SHIFTED},
    "off by one column": {Symptom.SHIFTED},
    "last column left out": {Symptom.ZEROS},
    "the result of an earlier call": {None},
    "products in TF32": {Symptom.LOWER_PRECISION},
    "products in BF16": {Symptom.LOWER_PRECISION},
    "mm 1: second half of the terms left out": {Symptom.PART_MISSING, None},  # behind a relu
    "mm 1: removed": {None},
}
TASKS = {"relu": 9, "matrix_mul": 13, "linear_relu": 11, "rotary_embedding": 9}


def first_findings(name: str) -> dict[str, Symptom | None]:
    """By the name of each wrong kernel, of one call of a task's first workload for a CPU."""
    task = find_task(name)
    workload = next(w for w in task.workloads if not w.hidden and DeviceKind.CPU in w.devices)
    with write_files(task) as folder:
        problem = load_problem(task, Path(folder))
        call, earlier = (
            Call(problem, workload, task.directions[0], seed, "cpu") for seed in (1, 2)
        )
        looks: dict[str, Symptom | None] = {}
        for mutant in mutants_of(call, earlier):
            if mutant.name not in LOOKS:
                continue
            output = mutant.run(call, False)[0].to(call.eager[0].dtype)
            compared = call.compared(0, output)
            if compared.mismatch is not None:
                scale, length = call._scales[0], task.reduction_length(workload)
                found = explain(
                    output, call.expected[0], call._limit, scale, compared.scaled, length
                )
                looks[mutant.name] = found[0].symptom if found else None
    return looks


@pytest.mark.parametrize("name", TASKS)
def test_a_wrong_kernel_looks_like_what_it_is(name: str) -> None:
    looks = first_findings(name)
    assert len(looks) >= TASKS[name]
    wrong = {mutant: look for mutant, look in looks.items() if look not in LOOKS[mutant]}
    assert wrong == {}
