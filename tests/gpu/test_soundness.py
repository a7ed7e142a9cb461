"""Built-in tasks on a CUDA device: mutants fail, and honest kernels keep away from the bounds.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.formats import built_in_tasks
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.host.config import default_cache_folder
from gpu_runner.supervisor.soundness.soundness import describe_soundness, survey
from tests.bench.evaluations import make_config

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

TASKS = built_in_tasks()
MARGIN = 0.7
"""Share of its bound that an honest kernel may need: vendor libraries choose their algorithms."""


def good(report: dict[str, Any]) -> bool:
    """Whether the task is sound but for its baseline, and honest kernels keep off its bounds."""
    flagged = [f for f in report["filters"] if f["passed"] is False and f["name"] != "baseline"]
    needed = max((entry["scaled"] for entry in report["honest"]), default=math.inf)
    return bool(report["mutants"]) and not report["survivors"] + flagged and needed <= MARGIN


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_mutant_survives_on_a_gpu(task: Task) -> None:
    config = replace(make_config(DeviceKind.CUDA, default_cache_folder()), oracle_timeout_s=600)
    report = survey(task, config)
    folder = os.environ.get("OUT")
    if folder:
        Path(folder, f"{task.name}.json").write_text(json.dumps(report, indent=1) + "\n")
    assert good(report), describe_soundness(report)
