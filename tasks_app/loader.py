"""Find tasks on disk; reading them never executes them."""

from __future__ import annotations

from pathlib import Path

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import load_task
from gpu_runner.data.task import Task


def load_tasks(path: Path, task_format: str = "auto") -> tuple[list[Task], list[DataError]]:
    """The tasks at `path`, and what is wrong with those that could not be read.

    `path` is a task, or a folder of tasks: then each entry that does not begin with a dot or an
    underscore is one.
    """
    tasks: list[Task] = []
    errors: list[DataError] = []
    for entry in _entries(path, task_format):
        try:
            tasks.append(load_task(entry, task_format))
        except DataError as error:
            errors.append(DataError(f"{entry}: {error.field}", error.reason))
    return tasks, errors


def _entries(path: Path, task_format: str) -> list[Path]:
    try:
        load_task(path, task_format)
    except DataError:
        inside = _inside(path)
        return inside or [path]  # `path` itself, so that its error is reported
    return [path]


def _inside(path: Path) -> list[Path]:
    """Entries of a folder of tasks; none if `path` looks like a task itself, but a broken one."""
    if not path.is_dir() or any(entry.is_file() for entry in path.glob("*.toml")):
        return []
    return [entry for entry in sorted(path.iterdir()) if entry.name[0] not in "._"]
