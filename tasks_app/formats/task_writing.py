"""A task as the texts of its folder, for somebody to edit or to compare."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import tomli_w

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import catalog_specifications, read_folder
from gpu_runner.data.formats.kbench import SPECIFICATION, is_variant
from gpu_runner.data.task import Task, TaskFormat, Workload

_HEAD = (
    *("name", "title", "format", "scenario", "description", "abi", "signature", "inout"),
    *("directions", "dtype", "libraries", "baselines"),
)
"""Keys of task.toml in the order in which they are written, tables left out."""
_APART = ("files", "tolerance", "work", "workloads", "kernels")


def write_folder(task: Task) -> dict[str, str]:
    """The texts of a task's folder, from which `read_folder` makes the same task, digest and all.

    Tuples among parameters become lists. What has its default value is not written. Raises
    `DataError` where one of the task's own files has the name of a specification.
    """
    for name in task.files:
        if name == SPECIFICATION or is_variant(name):
            raise DataError(f"files.{name}", "has a name reserved for files that specify a task")
    return {SPECIFICATION: _specification(task), **task.files}


def catalogue_folder(task: Task) -> dict[str, str] | None:
    """The texts of a built-in task as kbench has them, comments and sweeps included.

    None for every other task, for other versions of a built-in one, and for its variants, whose
    texts say only what differs.
    """
    path = catalog_specifications().get(task.name)
    if path is None or path.name != SPECIFICATION:
        return None
    files = {SPECIFICATION: path.read_text(encoding="utf-8"), **task.files}
    found, _ = read_folder(files)
    return files if found is not None and found.digest() == task.digest() else None


def _specification(task: Task) -> str:
    given = _given(task)
    if task.format is TaskFormat.KBENCH:
        del given["format"]
    order = dict.fromkeys((*_HEAD, *given))
    head = {name: given[name] for name in order if name in given and name not in _APART}
    tables = [_table("[tolerance]", given["tolerance"])] if "tolerance" in given else []
    for direction, work in task.work.items():
        tables.append(_table(f"[work.{direction.value}]", _given(work)))
    for index, workload in enumerate(task.workloads):
        parameters = _parameters(workload, f"workloads[{index}].parameters")
        tables.append(_table("[[workloads]]", _given(workload) | {"parameters": parameters}))
    tables += [_table("[[kernels]]", _given(kernel)) for kernel in task.kernels]
    return "\n".join(("".join(_line(name, value) for name, value in head.items()), *tables))


def _given(data: Any) -> dict[str, Any]:
    """The fields of a dataclass that have not their default values, as JSON values."""
    found = {}
    for spec in dataclasses.fields(data):
        value = getattr(data, spec.name)
        factory = spec.default_factory
        default = spec.default if factory is dataclasses.MISSING else factory()
        if value != default:
            found[spec.name] = codec.encode(value)
    return found


def _parameters(workload: Workload, field: str) -> object:
    """A table, or JSON in a text if the table holds a null, which TOML has not."""
    try:
        text = json.dumps(workload.parameters, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError):
        raise DataError(field, "contain values that JSON can't represent") from None
    document = json.loads(text)
    return text if _has_null(document) else document


def _has_null(value: object) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


def _table(header: str, values: Mapping[str, object]) -> str:
    return f"{header}\n" + "".join(_line(name, value) for name, value in values.items())


def _line(name: str, value: object) -> str:
    """`name = value` on one line, or on several where a text has several."""
    if isinstance(value, str) and "\n" in value and "\r" not in value:
        return tomli_w.dumps({name: value}, multiline_strings=True)
    return f"{_key(name)} = {_inline(value)}\n"


def _inline(value: object) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(name)} = {_inline(item)}" for name, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").removesuffix("\n")


def _key(name: str) -> str:
    return tomli_w.dumps({name: 0}).removesuffix(" = 0\n")
