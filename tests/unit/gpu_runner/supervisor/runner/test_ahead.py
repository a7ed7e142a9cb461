"""What is started ahead of a job serves once, whoever takes it, and is taken for nobody else."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data.protocol import LEAST_TEAM
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language
from gpu_runner.supervisor.build.build import build
from gpu_runner.supervisor.build.module import module_recipe
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.ahead import TorchAhead, TorchProcesses

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
_fork = multiprocessing.get_context("fork")
SOURCE = "import torch\n\ndef forward(x):\n    return torch.relu(x)\n"


@pytest.fixture
def config(tmp_path: Path) -> SupervisorConfig:
    return SupervisorConfig(cache_folder=tmp_path)


@pytest.fixture
def ahead(config: SupervisorConfig) -> Iterator[TorchAhead]:
    made = TorchAhead()
    made.start(config)
    yield made
    made.close()


def test_a_forks_process_is_buried_and_the_others_wait_on(
    ahead: TorchAhead, config: SupervisorConfig
) -> None:
    first = ahead.pids

    def take() -> None:
        runner = TorchProcesses(config, ahead).take(LEAST_TEAM)
        assert runner.child.pid in first

    fork = _fork.Process(target=take)
    fork.start()
    fork.join()
    assert fork.exitcode == 0
    assert ahead.pids == first  # which the fork could not tell us
    ahead.bury()
    assert len(ahead.pids) == len(first) - 1
    ahead.start(config)
    assert len(set(first) & set(ahead.pids)) == len(first) - 1
    ahead.bury()
    assert len(ahead.pids) == len(first)


def test_one_that_has_ended_is_nobodys(ahead: TorchAhead, config: SupervisorConfig) -> None:
    with_team = ahead.runner(config, LEAST_TEAM)
    assert with_team is not None
    assert ahead.runner(config, LEAST_TEAM) is None
    with_team.close()
    for name in ("importer", "runner"):
        taken = ahead.importer(config) if name == "importer" else ahead.runner(config, 0)
        assert taken is not None
        taken.close()
    ahead.start(config)
    for _, process in ahead._held.values():
        process.child.kill()
    assert ahead.runner(config, 0) is None
    assert ahead.importer(config) is None
    ahead.bury()
    assert ahead.pids == []


def test_it_is_for_the_same_host_alone(
    ahead: TorchAhead, config: SupervisorConfig, tmp_path: Path
) -> None:
    assert ahead.importer(SupervisorConfig(cache_folder=tmp_path / "other")) is None
    background = SupervisorConfig(cache_folder=config.cache_folder, niceness=5)
    importer = ahead.importer(background)
    assert importer is not None
    importer.close()


def test_a_module_is_imported_by_one_that_waits(
    ahead: TorchAhead, config: SupervisorConfig
) -> None:
    solution = Solution(source=SOURCE, language=Language.PYTHON)
    waiting = ahead.importer(config)
    assert waiting is not None
    given = [waiting]
    recipe = module_recipe(solution, config)
    built = build(replace(recipe, waiting=given.pop), config)
    assert built.report.ok, built.report.log
    assert given == []
    assert not waiting.child.running
