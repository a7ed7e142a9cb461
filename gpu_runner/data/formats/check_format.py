"""Checks of a task that belong to the format that it came in."""

from __future__ import annotations

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.kbench import check_reference
from gpu_runner.data.formats.kernelbench import check_sizes
from gpu_runner.data.formats.robust_kbench import check_functions
from gpu_runner.data.task import Task, TaskFormat
from gpu_runner.data.verdict import Abi


def check_format(task: Task) -> Task:
    """Return `task` if the code in its files is as its format has it; raises `DataError`."""
    if task.format is TaskFormat.KBENCH:
        check_reference(task)
        return task
    if task.abi is not Abi.TORCH:
        raise DataError("abi", f"a task of the format {task.format.value} has the torch ABI")
    if task.format is TaskFormat.ROBUST_KBENCH:
        check_functions(task)
    else:
        check_sizes(task)
    return task
