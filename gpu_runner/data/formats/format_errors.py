"""Checks of a task that belong to the format that it came in."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.kbench import reference_errors
from gpu_runner.data.formats.kernelbench import size_errors
from gpu_runner.data.formats.robust_kbench import function_errors
from gpu_runner.data.task import Task, TaskFormat
from gpu_runner.data.verdict import Abi


def format_errors(task: Task) -> Iterator[DataError]:
    """Where the code in a task's files is not as its format has it."""
    if task.format is TaskFormat.KBENCH:
        yield from reference_errors(task)
    elif task.abi is not Abi.TORCH:
        yield DataError("abi", f"must be torch in a task of the format {task.format.value}")
    elif task.format is TaskFormat.ROBUST_KBENCH:
        yield from function_errors(task)
    else:
        yield from size_errors(task)
