"""The check of a task that a site asks for: its soundness report, from a device of its own."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from gpu_runner.data.check import CheckRequest
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.device.lock import Courteous, exclusive
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.soundness.soundness import Progress, survey
from gpu_runner.supervisor.tools import health


def check_task(
    request: CheckRequest, config: SupervisorConfig, progress: Progress
) -> dict[str, Any]:
    """The report of `soundness.survey`, made while nothing else uses the device.

    Whoever is more urgent gets it between two steps.

    Raises `OracleError` where the task's code fails; `DeviceError`, `JailError` and `RunnerUnfit`
    where the host does.
    """
    progress(f"waits for {config.device}")

    def settle() -> None:
        if reason := health.settle(config):
            raise RunnerUnfit(reason)

    with exclusive(config, Urgency.RUNS) as turn:
        settle()
        manners = Courteous(turn, nullcontext, settle)

        def tell(text: str) -> None:
            if manners.is_wanted():
                progress("stepped aside for somebody more urgent")
                manners.step_aside()
            progress(text)

        try:
            return survey(request.task, config, progress=tell)
        except Exception:  # before somebody else gets the device
            health.suspect(config, Verdict.RUNTIME_ERROR)
            raise
