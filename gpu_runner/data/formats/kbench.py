"""The native format: a folder with task.toml and reference.py."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.check import check_task
from gpu_runner.data.formats.source import check_keywords, functions, parse_module
from gpu_runner.data.formats.text import list_files, read_files
from gpu_runner.data.task import Task, TaskFormat

SPECIFICATION = "task.toml"
REFERENCE = "reference.py"
_NOT_IN_TOML = ("files", "format", "schema_version")


def load_kbench(folder: Path) -> Task:
    """Read a native task folder; raises `DataError` naming the field or the file."""
    files = read_files(folder, list_files(folder))
    specification = files.pop(SPECIFICATION, None)  # its content is in the task's other fields
    if specification is None:
        raise DataError(SPECIFICATION, f"is missing in {folder}")
    document = _parse(specification)
    for name in _NOT_IN_TOML:
        if name in document:
            raise DataError(name, f"does not belong into {SPECIFICATION}")
    document |= {"files": files, "format": TaskFormat.KBENCH.value}
    task = codec.decode(Task, document)
    check_reference(task)
    return check_task(task)


def check_reference(task: Task) -> None:
    """Refuse a task whose reference.py lacks a function that the oracle will call."""
    if REFERENCE not in task.files:
        raise DataError(REFERENCE, "is missing in the task's folder")
    have = functions(parse_module(task.files[REFERENCE], REFERENCE))
    for name in ("make_inputs", *(f"{direction.value}_fn" for direction in task.directions)):
        if name not in have:
            raise DataError(REFERENCE, f"must define the function {name}()")
    for index, workload in enumerate(task.workloads):
        field = f"workloads[{index}].parameters"
        check_keywords(have["make_inputs"], workload.parameters, field)


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(SPECIFICATION, f"is not valid TOML: {error}") from None
