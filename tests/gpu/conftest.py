"""One folder of builds for all tests of a GPU: nothing is built twice."""

from __future__ import annotations

import pytest

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.bench.evaluations import make_config


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    cache = tmp_path_factory.getbasetemp().parent / "kbench-gpu-cache"
    return make_config(DeviceKind.CUDA, cache)
