"""A task whose own code fails ends as our fault, and tells submitters nothing that is hidden."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Mode, Verdict
from gpu_runner.supervisor.evaluate import TASK_FAILED
from gpu_runner.supervisor.host import jail, living
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.soundness.soundness import survey
from tests.protocol.evaluating import evaluated, needs_jail

pytestmark = needs_jail


DRAWS = "def make_inputs(N: int) -> dict[str, Tensor]:\n", "N"
COMPUTES = "def forward_fn(A: Tensor, B: Tensor) -> Tensor:\n", "A.numel()"


FAILS = "raise ValueError(f'no room for {N}')"
FILLS_THE_DEVICE = "raise torch.OutOfMemoryError('CUDA out of memory')"
TAKES_4_GIB = "kept = [torch.ones(1 << 27) for _ in range(8)]"
SMALL = 256 << 20  # of an oracle's limit a quarter


def faulty_task(line: str, *, hidden: bool, where: tuple[str, str] = DRAWS) -> Task:
    """One with this line in the code that draws the inputs of one workload, or computes it."""
    task = load_task(catalog_folder() / "vector_add")
    code = task.files["reference.py"]
    head, size = where
    faulty = code.replace(head, f"{head}    if {size} == 4099:\n        {line}\n")
    assert faulty != code
    workloads = (
        Workload(name="small", parameters={"N": 64}),
        Workload(name="odd", parameters={"N": 4099}, hidden=hidden),
    )
    files = {**task.files, "reference.py": faulty}
    return replace(task, workloads=workloads, files=files)


def result_of(
    folder: Path, line: str = FAILS, where: tuple[str, str] = DRAWS, *, hidden: bool, **limits: Any
) -> EvaluationResult:
    config = SupervisorConfig(cache_folder=folder, **limits)
    return evaluated(config, faulty_task(line, hidden=hidden, where=where), mode=Mode.RANKED)


def test_what_it_says_of_a_hidden_workload_is_in_the_log_alone(tmp_path: Path) -> None:
    result = result_of(tmp_path, hidden=True)
    assert (result.verdict, result.reason) == (Verdict.SYSTEM_ERROR, TASK_FAILED)
    assert "no room for 4099" in result.log
    public = result_of(tmp_path, hidden=False)
    assert public.verdict is Verdict.SYSTEM_ERROR
    assert "no room for 4099" in public.reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("hidden", "where"), [(True, DRAWS), (False, DRAWS), (False, COMPUTES)])
def test_a_reference_that_wants_too_much_memory_says_so_and_harms_nobody(
    tmp_path: Path, hidden: bool, where: tuple[str, str]
) -> None:
    result = result_of(tmp_path, TAKES_4_GIB, where, hidden=hidden, memory_bytes=SMALL)
    reason = "the task's reference ran out of memory (limit 1 GiB)"
    assert (result.verdict, result.reason) == (Verdict.SYSTEM_ERROR, reason)
    assert "allocate" in result.log
    if hidden:  # so does the check of such a task
        config = SupervisorConfig(cache_folder=tmp_path, memory_bytes=SMALL)
        with pytest.raises(OracleError, match=r"reference ran out of memory \(limit 1 GiB\)"):
            survey(faulty_task(TAKES_4_GIB, hidden=False), config)


def test_a_device_full_of_other_evaluations_memory_is_tried_again(tmp_path: Path) -> None:
    assert not result_of(tmp_path, FILLS_THE_DEVICE, hidden=True).retryable
    living.note(SupervisorConfig(cache_folder=tmp_path), os.getpid())
    result = result_of(tmp_path, FILLS_THE_DEVICE, hidden=True)
    assert (result.verdict, result.retryable) == (Verdict.SYSTEM_ERROR, True)


def test_a_reference_that_is_ended_for_its_memory_is_one_that_ran_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU's host, where memory cannot be refused."""
    monkeypatch.setattr(jail, "_limited", lambda limits: [])
    result = result_of(tmp_path, TAKES_4_GIB, hidden=True, memory_bytes=SMALL)
    assert result.reason == "the task's reference ran out of memory (limit 1 GiB)"
    assert "allocate" not in result.log
