"""A host with a cache of its own, and one oracle for all evaluations of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from tests.adversarial.side_by_side import OneOracle


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    return SupervisorConfig(cache_folder=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def oracles() -> Iterator[Oracles]:
    kept = OneOracle()
    yield kept
    kept.close()
