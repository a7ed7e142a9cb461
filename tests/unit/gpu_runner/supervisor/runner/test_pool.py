"""An oracle that is kept serves the same version of the same task, and ends with a failure."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import time
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gpu_runner.data.formats import find_task
from gpu_runner.data.task import Task
from gpu_runner.supervisor.device.lock import exclusive
from gpu_runner.supervisor.host import jail, living
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import Oracle
from gpu_runner.supervisor.runner.pool import Oracles

TASK = dataclasses.replace(find_task("vector_add"), baselines=())
pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")


@pytest.fixture
def config(tmp_path: Path) -> SupervisorConfig:
    return SupervisorConfig(cache_folder=tmp_path)


def draw(oracle: Oracle, task: Task) -> bytes:
    """The first input of a call, drawn into arenas of its own."""
    workload = task.workloads_for(SupervisorConfig().kind, task.directions[0], hidden=False)[0]
    with closing(Arena("inputs")) as inputs, closing(Arena("samples")) as samples:
        oracle.load(task, inputs, samples)
        described = oracle.describe(workload, task.directions[0], seed=1)
        size = sum(tensor["nbytes"] for tensor in described.tensors())
        inputs.resize(size)
        offsets = [0, described.tensors()[0]["nbytes"]]
        oracle.fill(workload, task.directions[0], seed=7, offsets=offsets)
        return bytes(inputs.view)


def _draw_and_leave(oracles: Oracles, config: SupervisorConfig, told: Connection) -> None:
    with oracles.lend(config) as oracle:
        told.send((oracle.pid, draw(oracle, TASK)))
    os._exit(0)


def test_one_that_was_started_ahead_serves_a_fork_and_no_second_evaluation(
    config: SupervisorConfig,
) -> None:
    """As a slot of a daemon does: each evaluation is a process that it forks."""
    context = multiprocessing.get_context("fork")
    with closing(Oracles()) as oracles:
        drawn = set()
        pids = set()
        for _ in range(2):
            oracles.start_ahead(config)
            [ready] = oracles.pids
            assert living.holders(config) == [ready]
            ours, theirs = context.Pipe()
            evaluation = context.Process(target=_draw_and_leave, args=(oracles, config, theirs))
            evaluation.start()
            pid, inputs = ours.recv()
            evaluation.join()
            assert pid == ready
            pids.add(pid)
            drawn.add(inputs)
            oracles.drop_ahead()
            assert oracles.pids == living.holders(config) == []
        assert len(pids) == 2
        assert len(drawn) == 1


def test_an_oracle_lives_until_its_evaluation_has_ended(config: SupervisorConfig) -> None:
    """It waits for a device that another has, and must not be taken for what that one left."""
    with closing(Oracles()) as oracles:
        with oracles.lend(config) as started_now:
            assert living.holders(config) == [started_now.pid]
        oracles.start_ahead(config)
        with oracles.lend(config) as started_ahead:
            assert living.holders(config) == [started_ahead.pid]
        assert living.holders(config) == []


def test_one_that_died_ahead_is_replaced(config: SupervisorConfig) -> None:
    with closing(Oracles()) as oracles, exclusive(config):  # whoever has the device is served
        oracles.start_ahead(config)
        [first] = oracles.pids
        os.kill(first, signal.SIGKILL)
        while oracles._ahead is not None and oracles._ahead[1].running:
            time.sleep(0.01)
        with oracles.lend(config) as oracle:
            assert oracle.pid != first
            assert any(draw(oracle, TASK))
