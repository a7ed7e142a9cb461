"""Find a task by name or path, detect its format, and load it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from gpu_runner.data.codec import DataError, DataErrors
from gpu_runner.data.formats.building import build_task
from gpu_runner.data.formats.flashinfer_trace import is_definition, read_flashinfer_trace
from gpu_runner.data.formats.folder import Fault, read_folder
from gpu_runner.data.formats.kbench import (
    SPECIFICATION,
    is_specification,
    is_variant,
    read_kbench,
    specifications,
)
from gpu_runner.data.formats.kernelbench import read_kernelbench
from gpu_runner.data.formats.naming import NAME_LIMIT
from gpu_runner.data.formats.reading import Reading
from gpu_runner.data.formats.robust_kbench import is_robust_kbench, read_robust_kbench
from gpu_runner.data.formats.text import TASK_LIMIT_BYTES, read_files, read_text
from gpu_runner.data.formats.trace_definition import DEFINITION
from gpu_runner.data.task import Task, TaskFormat

CATALOG_VARIABLE = "KBENCH_CATALOG"
_JSON_LIMIT_BYTES = 2 * TASK_LIMIT_BYTES  # quoting makes texts longer
_SUGGESTIONS, _SIMILARITY = 3, 0.5  # of names; 1 is the same name


def load_json(path: Path) -> Task:
    """Read an encoded `Task`; raises `DataError` naming the file or the fields."""
    text = read_text(path, path.name, _JSON_LIMIT_BYTES)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(path.name, f"is not valid JSON: {error}") from None
    return build_task(document)


def load_kbench(path: Path) -> Task:
    """Read a native task, as `read_kbench` names it; raises `DataError` as `load_task` does.

    Errors have their places but for a variant's, which may stand in either of two files.
    """
    document = read_kbench(path)
    try:
        return build_task(document)
    except DataErrors:
        if is_variant(path.name):
            raise
        folder = path if path.is_dir() else path.parent
        files = read_files(folder, [SPECIFICATION]) | document["files"]
        if faults := read_folder(files)[1]:
            raise DataErrors(map(_as_error, faults)) from None
        raise


def _as_error(fault: Fault) -> DataError:
    return DataError(fault.field, fault.reason, fault.line, fault.place)


_READERS: dict[str, Callable[[Path], Reading]] = {
    "kbench": lambda path: Reading(task=load_kbench(path)),
    "robust-kbench": read_robust_kbench,
    "kernelbench": read_kernelbench,
    "flashinfer-trace": read_flashinfer_trace,
    "json": lambda path: Reading(task=load_json(path)),
}
FORMATS = ("auto", *_READERS)
"""Values of `format` for `load_task`."""


def load_task(path: Path, format: str = "auto") -> Task:
    """Load the task at `path`, a folder or a file, without executing any of it.

    Raises `DataError` whose field is `path`, `format`, a file's name, or the dotted path of the
    wrong value, and `DataErrors` where it can be said all that is wrong.
    """
    return read_task(path, format).task


def read_task(path: Path, format: str = "auto") -> Reading:
    """As `load_task`, with what was adapted.

    A foreign task with the name of a built-in one gets its format in front of its name.
    """
    if format not in FORMATS:
        raise DataError("format", f"{format!r} is not one of {', '.join(FORMATS)}")
    if not path.exists():
        raise DataError("path", f"{str(path)!r} does not exist")
    format = _detect(path) if format == "auto" else format
    return _apart(_READERS[format](path))


def _apart(reading: Reading) -> Reading:
    """Keep a foreign task from becoming a version of the built-in one with its name."""
    task = reading.task
    if task.format is TaskFormat.KBENCH or task.name not in catalog_specifications():
        return reading
    name = f"{task.format.value}-{task.name}"[:NAME_LIMIT]
    note = f"is imported as {name}, because a built-in task is already named {task.name}"
    return replace(reading, task=replace(task, name=name), adaptations=(note, *reading.adaptations))


def _detect(path: Path) -> str:
    if path.is_dir():
        if (path / SPECIFICATION).exists():
            return "kbench"
        if is_robust_kbench(path):
            return "robust-kbench"
        if (path / DEFINITION).exists():
            return "flashinfer-trace"
        known = f"no {SPECIFICATION}, func_forward.py or {DEFINITION}"
        raise DataError("path", f"{str(path)!r} has {known}")
    if is_specification(path):
        return "kbench"
    if path.suffix == ".json" and is_definition(path):
        return "flashinfer-trace"
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


def catalog_specifications() -> dict[str, Path]:
    """The file that specifies each built-in task, by the task's name, in order of the names."""
    found = {}
    for path in catalog_folder().glob(f"*/{SPECIFICATION}"):
        for specification in specifications(path.parent):
            variant = specification.stem.removeprefix(path.stem)  # "" or "_bf16"
            found[path.parent.name + variant] = specification
    return dict(sorted(found.items()))


def find_task(name_or_path: str) -> Task:
    """Load a built-in task by its name, or any other by its path.

    A name wins over a path; `./NAME` is a path for certain. Raises `DataError` (field `task`)
    where there is neither, and suggests built-in tasks with similar names.
    """
    built_in = catalog_specifications()
    if name_or_path in built_in:
        return load_task(built_in[name_or_path])
    if Path(name_or_path).exists():
        return load_task(Path(name_or_path))
    raise DataError(
        "task", f"there is no task or path {name_or_path!r}; {_hint(name_or_path, built_in)}"
    )


def _hint(name: str, built_in: Iterable[str]) -> str:
    names = list(built_in)
    close = get_close_matches(name.lower(), names, n=_SUGGESTIONS, cutoff=_SIMILARITY)
    if close:
        return f"similar built-in tasks: {', '.join(close)}"
    return f"none of the {len(names)} built-in tasks in {catalog_folder()} has a similar name"


def built_in_tasks() -> list[Task]:
    """Every built-in task, in order of the names; raises `DataError` as `load_task` does."""
    return [load_task(path) for path in catalog_specifications().values()]
