"""A process that is timed has the measured processors; one that is verified has teams that race."""

from __future__ import annotations

import os
import random
from contextlib import ExitStack, closing

import pytest

from gpu_runner.data import wire
from gpu_runner.data.formats import find_task
from gpu_runner.data.protocol import LEAST_TEAM
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.build.build import build_runner, build_shim, build_solution
from gpu_runner.supervisor.host import processors
from gpu_runner.supervisor.host.arena import Arena, extent, place, span_bytes
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.processors import measured_cpus, team_environment, team_size
from gpu_runner.supervisor.runner.conditions import Arenas, Conditions
from gpu_runner.supervisor.runner.session import Session
from gpu_runner.supervisor.runner.target import Target
from tests.protocol.evaluating import needs_jail, request

TASK = find_task("vector_add")
COUNT = 64
SOURCE = """
#include <omp.h>
#include <sched.h>
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  C[0] = omp_get_max_threads();
  C[1] = CPU_COUNT(&set);
#pragma omp parallel
#pragma omp single
  C[2] = omp_get_num_threads();
}
"""


def call(rng: random.Random) -> tuple[wire.Call, int]:
    """A call of the task, and where its output begins."""
    size = 4 * COUNT
    read, written = place([size, size], rng), place([size], rng)
    arguments = (
        wire.Argument(ArgumentKind.INPUT, size, input_offset=read[0].offset),
        wire.Argument(ArgumentKind.INPUT, size, input_offset=read[1].offset),
        wire.Argument(ArgumentKind.OUTPUT, size, output_offset=written[0].offset),
        wire.Argument(ArgumentKind.VALUE, value=COUNT),
    )
    return wire.Call(1, arguments, *extent(read), *extent(written)), written[0].offset


def seen(config: SupervisorConfig, conditions: Conditions) -> list[int]:
    """Largest team, processors and threads of a team, as the kernel finds them."""

    target = Target(
        Abi.C,
        Direction.FORWARD,
        library=build_solution(request(TASK, SOURCE), config).library,
        symbol="vector_add",
        shim=build_shim(TASK.c_signature, config),
        runner=build_runner(config),
    )
    with ExitStack() as stack:
        inputs, outputs = (stack.enter_context(closing(Arena(name))) for name in ("in", "out"))
        for arena in (inputs, outputs):
            arena.resize(span_bytes([4 * COUNT, 4 * COUNT]))
            arena.seal_size()
        arenas = Arenas(inputs, outputs)
        session = stack.enter_context(Session(target, arenas, config, None, conditions))
        session.ready()
        made, offset = call(random.Random(7))
        session.call(made)
        found = outputs.view[offset : offset + 12].cast("f")
        values = [round(value) for value in found]
        found.release()
        session.end()
    return values


@pytest.fixture
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    return SupervisorConfig(cache_folder=tmp_path_factory.getbasetemp() / "audit-cache")


@needs_jail
def test_verified_calls_have_a_team_and_all_processors_and_timed_ones_the_measured(
    config: SupervisorConfig,
) -> None:
    everywhere = len(os.sched_getaffinity(0))
    team = max(LEAST_TEAM, everywhere) | 1
    assert seen(config, Conditions(team=LEAST_TEAM)) == [team, everywhere, team]
    assert seen(config, Conditions()) == [len(measured_cpus())] * 3


def test_a_team_is_as_large_as_the_host_at_least_as_asked_and_odd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for count, team in (1, 5), (2, 5), (15, 15), (16, 17):
        monkeypatch.setattr(processors.os, "sched_getaffinity", lambda _, n=count: set(range(n)))
        assert team_size(LEAST_TEAM) == team


def test_a_timed_team_has_a_thread_for_each_measured_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processors, "_siblings", str)
    for count, team in (1, 1), (2, 1), (16, 15):
        monkeypatch.setattr(processors.os, "sched_getaffinity", lambda _, n=count: set(range(n)))
        assert team_size() == team
        known = {"OMP_NUM_THREADS": str(team), "NUMBA_NUM_THREADS": str(team)}
        assert team_environment() == known  # or numba would count all processors
