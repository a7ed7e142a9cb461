"""A task's files on disk, from where they can be imported."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gpu_runner.data.task import Task
from gpu_runner.engine.problem import ProblemError


def write_files(task: Task) -> tempfile.TemporaryDirectory[str]:
    """The task's files in a fresh folder under TMPDIR. Raises `ProblemError` on a path outside."""
    folder = tempfile.TemporaryDirectory(prefix="task-")
    root = Path(folder.name).resolve()
    for name, text in task.files.items():
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise ProblemError(f"the file {name!r} lies outside of the task")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
