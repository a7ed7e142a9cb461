"""The request for a task's soundness report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpu_runner.data import codec
from gpu_runner.data.task import Task

REPORT_LIMIT_BYTES = 4 * 1024 * 1024
"""Limit for a report, as JSON."""


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """Everything that a runner needs to know to check a task.

    device: name of the device's queue, such as "cpu" or "nvidia-h200". vary: whether the task is an
    imported file that is to get further workloads first. Its report is then that of the task with
    all of them, which it lists as `workloads`.
    """

    KIND: ClassVar[str] = "check"

    check_id: str
    task: Task
    device: str
    attempt: int = 1
    vary: bool = False
    schema_version: int = codec.SCHEMA_VERSION
