"""Measures a task's baselines apart from any kernel, those that take long to compile among them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext

from gpu_runner.data.baselines import BaselineReport, BaselineRequest
from gpu_runner.data.queue import Urgency
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.baselines import Baselines
from gpu_runner.supervisor.device.lock import Courteous, exclusive
from gpu_runner.supervisor.evaluate import memory_of
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.oracle.client import Oracle, OracleError
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.runner.preemption import Manners
from gpu_runner.supervisor.timeline import calls_so_far
from gpu_runner.supervisor.tools import health
from gpu_runner.supervisor.tools.anchor import measure_anchor

Progress = Callable[[str], None]


def measure_baselines(
    request: BaselineRequest, config: SupervisorConfig, progress: Progress
) -> BaselineReport:
    """All baselines of a task and direction, where it is timed; what is known is not redone.

    Everybody else goes first, between any two calls. Raises `OracleError` where the task's code
    fails; `DeviceError`, `JailError` and `RunnerUnfit` where the host does.
    """
    jail.require(allow_unjailed=config.allow_unjailed)
    task, direction = request.task, request.direction
    found = task.workloads_for(config.kind, direction, hidden=True)
    workloads = [workload for workload in found if workload.timed]
    if not workloads:
        raise OracleError(f"the task has no timed workload for a {config.kind} device")
    baselines = Baselines(task, direction, config)
    progress(f"waits for {config.device}")
    with Oracle(config) as oracle, exclusive(config, Urgency.BASELINES) as turn:
        _settle(config)
        manners = Courteous(turn, nullcontext, lambda: _settle(config))
        with _bench(task, config, oracle, manners) as bench:
            bench.prepare(workloads, direction, {})
            if config.kind is DeviceKind.CUDA:
                baselines.anchor_ns = measure_anchor(config)
            baselines.measure_missing(bench, workloads, _told_by(progress))
            baselines.measure_slow(bench, workloads, _told_by(progress))
    return baselines.report(workloads)


def _settle(config: SupervisorConfig) -> None:
    if unfit := health.settle(config):
        raise RunnerUnfit(unfit)


def _told_by(progress: Progress) -> Callable[[int, int, int], None]:
    def tell(done: int, of: int, calls: int) -> None:
        progress(calls_so_far(done, of, calls))

    return tell


@contextmanager
def _bench(
    task: Task, config: SupervisorConfig, oracle: Oracle, manners: Manners
) -> Iterator[Bench]:
    rng = random.SystemRandom()
    with closing(Arena("inputs")) as inputs, closing(Arena("samples")) as samples:
        oracle.load(task, inputs, samples)
        with closing(memory_of(oracle, inputs, samples, rng, config)) as memory:
            yield Bench(oracle, memory, samples, config, rng, manners)
