"""Gives an imported task further workloads, from runs of its file in the oracle's jail."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.kernelbench import with_workloads
from gpu_runner.data.formats.source import parse_module
from gpu_runner.data.task import Task
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.oracle.further import further_workloads
from gpu_runner.supervisor.oracle.sizes import Sizes, SizesOracle


@dataclass(frozen=True)
class Varied:
    """A task with all workloads that its file allows; `remark` says why none was added, or ""."""

    task: Task
    remark: str


def vary(task: Task, config: SupervisorConfig) -> Varied:
    """Find further workloads for a KernelBench file that has its own shape alone.

    Raises `OracleError` where the file ends the process that runs it, takes too long, or gives
    what makes no sense; `JailError` where there is no jail.
    """
    jail.require(allow_unjailed=config.allow_unjailed)
    ((name, text),) = task.files.items()
    with (
        closing(Arena("inputs")) as inputs,
        closing(Arena("samples")) as samples,
        SizesOracle(config) as oracle,
    ):
        oracle.load(task, inputs, samples)
        sizes = Sizes(oracle.run_file, parse_module(text, name))
        workloads = further_workloads(task.workloads[0], sizes)
    try:
        varied = with_workloads(task, workloads)
    except DataError as error:
        raise OracleError(f"the file's sizes make no workloads: {error}") from None
    return Varied(varied, "" if len(workloads) > 1 else _alone(sizes))


def _alone(sizes: Sizes) -> str:
    if sizes.own.fault:
        return f"no further workload: Model cannot be run without any data ({sizes.own.fault})"
    return "no further workload: get_inputs() has no size that can change on its own"
