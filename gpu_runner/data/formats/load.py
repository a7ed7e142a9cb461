"""Find a task by name or path, detect its format, and load it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.check import check_task
from gpu_runner.data.formats.kbench import SPECIFICATION, check_reference, load_kbench
from gpu_runner.data.formats.kernelbench import load_kernelbench
from gpu_runner.data.formats.robust_kbench import is_robust_kbench, load_robust_kbench
from gpu_runner.data.formats.text import TASK_LIMIT_BYTES, read_text
from gpu_runner.data.task import Task, TaskFormat

CATALOG_VARIABLE = "KBENCH_CATALOG"
_JSON_LIMIT_BYTES = 2 * TASK_LIMIT_BYTES  # quoting makes texts longer


def load_json(path: Path) -> Task:
    """Read an encoded `Task`; raises `DataError` naming the field."""
    try:
        document = json.loads(read_text(path, path.name, _JSON_LIMIT_BYTES))
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(path.name, f"is not valid JSON: {error}") from None
    task = check_task(codec.decode(Task, document))
    if task.format is TaskFormat.KBENCH:
        check_reference(task)
    return task


_LOADERS: dict[str, Callable[[Path], Task]] = {
    "kbench": load_kbench,
    "robust-kbench": load_robust_kbench,
    "kernelbench": load_kernelbench,
    "json": load_json,
}
FORMATS = ("auto", *_LOADERS)
"""Values of `format` for `load_task`."""


def load_task(path: Path, format: str = "auto") -> Task:
    """Load the task at `path`, a folder or a file, without executing any of it.

    Raises `DataError` whose field is `path`, `format`, a file's name, or the dotted path of the
    wrong value.
    """
    if format not in FORMATS:
        raise DataError("format", f"{format!r} is not one of {', '.join(FORMATS)}")
    if not path.exists():
        raise DataError("path", f"{str(path)!r} does not exist")
    if path.name == SPECIFICATION:
        path = path.parent
    return _LOADERS[_detect(path) if format == "auto" else format](path)


def _detect(path: Path) -> str:
    if path.is_dir():
        if (path / SPECIFICATION).exists():
            return "kbench"
        if is_robust_kbench(path):
            return "robust-kbench"
        raise DataError("path", f"{str(path)!r} has neither {SPECIFICATION} nor func_forward.py")
    detected = {".json": "json", ".py": "kernelbench"}.get(path.suffix)
    if detected is None:
        raise DataError("path", f"{str(path)!r} is neither a folder nor a .py or .json file")
    return detected


def catalog_folder() -> Path:
    """Folder of the built-in tasks: the variable KBENCH_CATALOG, else tasks_app/catalog."""
    configured = os.environ.get(CATALOG_VARIABLE)
    if configured:
        return Path(configured)
    return Path(__file__).resolve().parents[3] / "tasks_app" / "catalog"


def find_task(name_or_path: str) -> Task:
    """Load a built-in task by its name, or any other by its path.

    A name wins over a path; `./NAME` is a path for certain. Raises `DataError` (field `task`)
    where there is neither.
    """
    folder = catalog_folder()
    plain = Path(name_or_path).name == name_or_path not in ("", "..")
    if plain and (folder / name_or_path / SPECIFICATION).is_file():
        return load_task(folder / name_or_path)
    if Path(name_or_path).exists():
        return load_task(Path(name_or_path))
    names = sorted(path.parent.name for path in folder.glob(f"*/{SPECIFICATION}"))
    have = ", ".join(names) or f"none in {folder}"
    raise DataError("task", f"no task or path {name_or_path!r}; built-in tasks: {have}")
