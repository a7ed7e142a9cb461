"""Checks that every task must pass, whatever the format that it came in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gpu_runner.data.codec import SCHEMA_VERSION, DataError, caught, encode, refuse
from gpu_runner.data.formats.sweeps import WORKLOADS_LIMIT
from gpu_runner.data.formats.text import check_files
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import PYTORCH, ShippedKernel, Task, TaskFormat
from gpu_runner.data.verdict import Abi
from gpu_runner.data.wire import DTYPES

SCENARIOS = ("algebra", "llm", "sparse", "scientific", "networks", "other")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")
_LIBRARY = re.compile(r"[a-z][a-z0-9_]{0,29}")
_TAKEN = ("best", "empty")
_AGENT = re.compile(r"[A-Za-z0-9][\w .:/@+()-]{0,99}", re.ASCII)  # as of those who submit
_WORKLOAD_NAME_LIMIT = 200  # chosen: what lists have room for
_PARAMETERS_LIMIT_BYTES = 4096  # chosen: some hundred parameters
_INTEGERS = {
    "int8": (-(2**7), 2**7),
    "uint8": (0, 2**8),
    "int16": (-(2**15), 2**15),
    "int32": (-(2**31), 2**31),
    "int64": (-(2**63), 2**63),
    "bool": (0, 2),
}
"""By dtype the smallest integer, and the first that is too large."""


def usable_task(task: Task) -> Task:
    """Return `task` if an evaluation could use it; raises `DataErrors` naming the fields."""
    refuse(task_errors(task))
    return task


def task_errors(task: Task) -> Iterator[DataError]:
    """Why no evaluation could use the task, beside what `Task.errors` says."""
    if task.schema_version != SCHEMA_VERSION:
        yield DataError("schema_version", f"is {task.schema_version}, not {SCHEMA_VERSION}")
    if not _NAME.fullmatch(task.name):
        reason = "must be 1 to 80 characters, only a-z, 0-9, '_', '-' and '.'"
        yield DataError("name", f"{task.name!r} {reason}, starting with a letter or digit")
    if not task.title.strip():
        yield DataError("title", "is empty")
    yield from _one_of("scenario", task.scenario, SCENARIOS)
    yield from _one_of("dtype", task.dtype, DTYPES)
    yield from _baseline_errors(task)
    yield from caught(check_files, task.files.items())
    yield from _tolerance_errors(task)
    yield from _direction_errors(task)
    yield from _workload_errors(task)
    yield from _integer_errors(task)
    for index, kernel in enumerate(task.kernels):
        yield from _kernel_errors(task, kernel, f"kernels[{index}]")


def _baseline_errors(task: Task) -> Iterator[DataError]:
    if len(set(task.baselines)) < len(task.baselines):
        yield DataError("baselines", "lists a name twice")
    for name in task.library_baselines:
        if task.format is not TaskFormat.KBENCH:
            yield from _one_of("baselines", name, PYTORCH)
        elif not _LIBRARY.fullmatch(name) or name in _TAKEN:
            reason = "must be 1 to 30 characters, only a-z, 0-9 and '_', starting with a letter"
            taken = " or ".join(map(repr, _TAKEN))
            yield DataError("baselines", f"{name[:40]!r} {reason}, and not {taken}")


def _workload_errors(task: Task) -> Iterator[DataError]:
    yield from caught(refuse_too_many, task.workloads)
    for index, workload in enumerate(task.workloads):
        field = f"workloads[{index}]"
        if not _is_name(workload.name):
            reason = f"must be 1 to {_WORKLOAD_NAME_LIMIT} printable characters"
            yield DataError(f"{field}.name", reason)
        yield from _parameter_errors(f"{field}.parameters", workload.parameters)
        if not workload.devices:
            yield DataError(f"{field}.devices", "is empty: list cuda, cpu or both")
        if not workload.directions:
            yield DataError(f"{field}.directions", "is empty")


def _tolerance_errors(task: Task) -> Iterator[DataError]:
    for name in ("constant", "growth"):
        value = getattr(task.tolerance, name)
        if not value >= 0:  # NaN is refused, too; without a bound, wrong kernels survive
            yield DataError(f"tolerance.{name}", f"is {value}, but must be a number, 0 or more")


def _integer_errors(task: Task) -> Iterator[DataError]:
    """Parameters that the C signature hands over as integers, and that are none."""
    try:
        scalars = task.c_signature.parameters if task.abi is Abi.C else ()
    except DataError:  # `Task.errors` says so
        return
    dtypes = {p.name: p.dtype for p in scalars if p.dtype in _INTEGERS}
    for index, workload in enumerate(task.workloads):
        for name in sorted(dtypes.keys() & workload.parameters.keys()):
            value, (least, end) = workload.parameters[name], _INTEGERS[dtypes[name]]
            if not isinstance(value, int) or not least <= value < end:
                reason = f"is {value!r}, but the signature declares it as {_in_words(dtypes[name])}"
                yield DataError(f"workloads[{index}].parameters.{name}", reason)


def _in_words(dtype: str) -> str:
    if dtype == "bool":
        return "a boolean"
    kind = "unsigned integer" if dtype.startswith("u") else "integer"
    return f"a {dtype.lstrip('uint')}-bit {kind}"


def refuse_too_many(workloads: Sequence[object]) -> None:
    """Refuse more workloads than a task may have."""
    if len(workloads) > WORKLOADS_LIMIT:
        raise DataError("workloads", f"has more than {WORKLOADS_LIMIT} entries")


def _one_of(field: str, value: str, allowed: tuple[str, ...]) -> Iterator[DataError]:
    if value not in allowed:
        yield DataError(field, f"{value!r} is not one of {', '.join(allowed)}")


def _direction_errors(task: Task) -> Iterator[DataError]:
    if not task.directions:
        yield DataError("directions", "is empty: list forward, backward or both")
    if len(set(task.directions)) != len(task.directions):
        yield DataError("directions", "lists a direction twice")
    for direction in dict.fromkeys(task.directions):
        if not any(direction in w.directions and not w.hidden for w in task.workloads):
            yield DataError(
                "workloads", f"has no listed workload for the direction {direction.value}"
            )
    for direction in task.work:
        if direction not in task.directions:
            yield DataError(
                f"work.{direction.value}", "is for a direction that the task doesn't support"
            )


def _is_name(name: str) -> bool:
    return bool(name.strip()) and len(name) <= _WORKLOAD_NAME_LIMIT and name.isprintable()


def _parameter_errors(field: str, parameters: Any) -> Iterator[DataError]:
    bad = [name for name, value in parameters.items() if not _is_plain(value)]
    for name in bad:
        yield DataError(f"{field}.{name}", "must be a number, a string, a boolean or a list")
    if not bad and len(json.dumps(encode(parameters))) > _PARAMETERS_LIMIT_BYTES:
        yield DataError(field, f"are longer than {_PARAMETERS_LIMIT_BYTES} bytes as JSON")


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _kernel_errors(task: Task, kernel: ShippedKernel, field: str) -> Iterator[DataError]:
    suffix = kernel.language.suffix
    if kernel.path not in task.files:
        yield DataError(f"{field}.path", f"is not one of the task's files: {kernel.path!r}")
    if not kernel.path.endswith(suffix):
        yield DataError(f"{field}.path", f"must end in {suffix} for a {kernel.language} kernel")
    if kernel.direction not in task.directions:
        yield DataError(f"{field}.direction", "is not one of the task's directions")
    if not _AGENT.fullmatch(kernel.agent):
        reason = "must be 1 to 100 characters, only A-Z, a-z, 0-9, spaces and _ . : / @ + ( ) -"
        yield DataError(f"{field}.agent", f"{reason}, starting with a letter or digit")
    yield from _source_errors(task, kernel)


def _source_errors(task: Task, kernel: ShippedKernel) -> Iterator[DataError]:
    """Why it could not be submitted: the site enters a public task's kernels by itself."""
    source = task.files.get(kernel.path)
    if source is None:
        return
    try:
        Solution(source=source, language=kernel.language, direction=kernel.direction)
    except DataError as error:
        yield DataError(kernel.path, f"is listed as a kernel, but {error.reason}")
