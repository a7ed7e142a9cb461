"""From a document to a task that passes every check, with all that is wrong with it."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import typing
from collections.abc import Iterator, Mapping

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError, caught
from gpu_runner.data.formats.kbench import reference_errors
from gpu_runner.data.formats.kernelbench import size_errors
from gpu_runner.data.formats.robust_kbench import function_errors
from gpu_runner.data.formats.task_errors import task_errors
from gpu_runner.data.formats.trace_definition import trace_errors
from gpu_runner.data.task import Task, TaskFormat
from gpu_runner.data.verdict import Abi


def format_errors(task: Task) -> Iterator[DataError]:
    """Where the code in a task's files is not as its format has it."""
    if task.format is TaskFormat.KBENCH:
        yield from reference_errors(task)
    elif task.abi is not Abi.TORCH:
        yield DataError("abi", f"must be torch in a task in {task.format.value} format")
    elif task.format is TaskFormat.ROBUST_KBENCH:
        yield from function_errors(task)
    elif task.format is TaskFormat.FLASHINFER_TRACE:
        yield from trace_errors(task)
    else:
        yield from size_errors(task)


_ERRORS_LIMIT = 5000  # those of the workloads of a sweep are put together later


class _Unchecked(Task):
    """A task that may be wrong."""

    def __post_init__(self) -> None:
        """Refuse nothing."""


def build_task(document: object) -> Task:
    """The task that a document holds; raises `DataErrors` with all that is wrong with it."""
    task, errors = examine(document)
    codec.refuse(errors)
    assert task is not None, "nothing is wrong with it"
    return task


def examine(document: object, *, is_python: bool = True) -> tuple[Task | None, list[DataError]]:
    """The task that a document holds, or else all that is wrong with it.

    Values that do not fit their types hide everything else. is_python: whether all its Python
    files are Python; where one is not, what stands in them is not looked at.
    """
    errors = list(itertools.islice(_type_errors(Task, document, ""), _ERRORS_LIMIT))
    if errors:
        return None, errors
    task = codec.decode(_Unchecked, document)
    formats = format_errors(task) if is_python else ()
    found = _once(itertools.chain(task.errors(), task_errors(task), formats))
    errors = list(itertools.islice(found, _ERRORS_LIMIT))
    return (None, errors) if errors else (_checked(task), [])


def _checked(task: _Unchecked) -> Task:
    """The same as a task; that its formulas have values is not tried again, which may take long."""
    checked = object.__new__(Task)
    vars(checked).update(vars(task))
    return checked


def _once(errors: Iterator[DataError]) -> Iterator[DataError]:
    """The errors, of which a value is said to be missing once, however many need it."""
    missing: set[str] = set()
    for error in errors:
        if not error.reason.startswith("is missing: "):
            yield error
        elif error.field not in missing:
            missing.add(error.field)
            yield error


def _type_errors(hint: object, value: object, field: str) -> Iterator[DataError]:
    """Every value that does not fit its type, where `codec.decode` stops at the first."""
    arguments, origin = typing.get_args(hint), typing.get_origin(hint)
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        yield from _dataclass_errors(typing.cast(type, hint), value, f"{field}." if field else "")
    elif origin is tuple and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _type_errors(arguments[0], item, f"{field}[{index}]")
    elif isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        for key, item in value.items():
            yield from caught(codec.decode, arguments[0], key, field)
            yield from _type_errors(arguments[1], item, f"{field}.{key}")
    else:
        yield from caught(codec.decode, hint, value, field)


def _dataclass_errors(cls: type, value: Mapping[str, object], prefix: str) -> Iterator[DataError]:
    hints = codec.type_hints(cls)
    for name in value:
        if name not in hints:
            near = difflib.get_close_matches(name[:80], hints, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            yield DataError(f"{prefix}{name}", f"is not a known field{meant}")
    for spec in dataclasses.fields(cls):
        if spec.name in value:
            yield from _type_errors(hints[spec.name], value[spec.name], prefix + spec.name)
        elif not _has_default(spec):
            yield DataError(prefix + spec.name, "is missing")


def _has_default(spec: dataclasses.Field[object]) -> bool:
    missing = dataclasses.MISSING
    return spec.default is not missing or spec.default_factory is not missing
