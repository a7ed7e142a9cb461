"""The check of a task that a site asks for: its soundness report, from a device of its own."""

from __future__ import annotations

from typing import Any

from gpu_runner.data.check import CheckRequest
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor import health
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.device import exclusive
from gpu_runner.supervisor.session import RunnerUnfit
from gpu_runner.supervisor.soundness import Progress, survey


def check_task(
    request: CheckRequest, config: SupervisorConfig, progress: Progress
) -> dict[str, Any]:
    """The report of `soundness.survey`, made while nothing else uses the device.

    Raises `OracleError` where the task's code fails; `DeviceError`, `JailError` and `RunnerUnfit`
    where the host does.
    """
    progress(f"waits for {config.device}")
    with exclusive(config):
        if reason := health.settle(config):
            raise RunnerUnfit(reason)
        try:
            return survey(request.task, config, progress=progress)
        except Exception:  # before somebody else gets the device
            health.suspect(config, Verdict.RUNTIME_ERROR)
            raise
