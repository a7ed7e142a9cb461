"""Shipped CUDA kernels, torch extensions among them, are built into libraries beyond suspicion.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import built_in_tasks
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import ShippedKernel, Task
from gpu_runner.data.verdict import Language, Mode
from gpu_runner.supervisor.build.binary import check_library
from gpu_runner.supervisor.build.build import build_solution
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.host.config import SupervisorConfig

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]


def found(task: Task, kernel: ShippedKernel, config: SupervisorConfig) -> list[str]:
    """What is said of one kernel's library."""
    solution = Solution(
        source=task.files[kernel.path], language=kernel.language, direction=kernel.direction
    )
    request = EvaluationRequest(
        evaluation_id="gpu", task=task, solution=solution, mode=Mode.COMPILE, device=config.device
    )
    built = build_solution(request, config)
    assert built.library is not None, built.report.log
    assert built.report.resources
    return [
        f"{task.name} {kernel.path}: {suspicion.reason}"
        for suspicion in check_library(built.library.read_bytes(), request)
    ]


def test_no_shipped_kernel_is_accused(config: SupervisorConfig) -> None:
    kernels = [(t, k) for t in built_in_tasks() for k in t.kernels if k.language is Language.CUDA]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        results = list(pool.map(lambda pair: found(*pair, config), kernels))
    assert len(results) >= 20
    assert [reason for result in results for reason in result] == []
