"""Where imported tasks come from: a file from another place isn't a new version of a task."""

from __future__ import annotations

from gpu_runner.data.codec import DataError
from gpu_runner.data.task import Task as TaskData
from tasks_app.formats.importing import Import, Row, refused
from tasks_app.models import TaskVersion


def origins(found: Import) -> dict[str, str]:
    """By name, the places of an import's tasks that are named after their files."""
    return {row.name: _place(row) for row in found.rows if row.is_named_by_path}


def refuse_strangers(found: Import, *, moved: bool) -> None:
    """Refuse tasks that would become versions of another place's task with the same name.

    moved: they may be the same files in a new place.
    """
    for index, row in enumerate(found.rows):
        if row.task is None or moved or not row.is_named_by_path:
            continue
        if (whose := _taken_by(row, row.task)) is not None:
            advice = "rename this file or its folder, or pass --moved if it is the same file"
            reason = f"{row.name} is already the name of {whose}: {advice}"
            found.rows[index] = refused(row.path, DataError("name", reason))


def _place(row: Row) -> str:
    return str(row.path.resolve())


def _taken_by(row: Row, data: TaskData) -> str | None:
    """The owner of the name, if it isn't this file."""
    versions = list(TaskVersion.objects.filter(task__slug=data.name))
    known = [version.origin for version in versions if version.origin]
    has_its_text = any(version.data.files == data.files for version in versions)
    if not versions or has_its_text or _place(row) in known:
        return None
    return known[0] if known else "a task that was written here"
