"""Checks that every task must pass, whatever the format that it came in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from gpu_runner.data.codec import SCHEMA_VERSION, DataError, encode
from gpu_runner.data.formats.sweeps import WORKLOADS_LIMIT
from gpu_runner.data.formats.text import check_files
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import ShippedKernel, Task
from gpu_runner.data.verdict import Abi
from gpu_runner.data.wire import DTYPES

SCENARIOS = ("algebra", "llm", "sparse", "scientific", "networks", "other")
BASELINES = ("eager", "compiled")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")
_AGENT = re.compile(r"[A-Za-z0-9][\w .:/@+()-]{0,99}", re.ASCII)  # as of those who submit
_WORKLOAD_NAME_LIMIT = 200
_PARAMETERS_LIMIT_BYTES = 4096
_INTEGERS = ("int32", "int64")


def check_task(task: Task) -> Task:
    """Return `task` if an evaluation could use it; raises `DataError` naming the field."""
    if task.schema_version != SCHEMA_VERSION:
        raise DataError("schema_version", f"is {task.schema_version}, not {SCHEMA_VERSION}")
    if not _NAME.fullmatch(task.name):
        raise DataError("name", f"{task.name!r} is not 1 to 80 of a-z, 0-9, '_', '-' and '.'")
    if not task.title.strip():
        raise DataError("title", "is empty")
    _one_of("scenario", task.scenario, SCENARIOS)
    _one_of("dtype", task.dtype, DTYPES)
    for baseline in task.baselines:
        _one_of("baselines", baseline, BASELINES)
    check_files(task.files.items())
    _check_tolerance(task)
    _check_directions(task)
    _check_workloads(task)
    _check_integers(task)
    _check_kernels(task)
    return task


def _check_workloads(task: Task) -> None:
    check_count(task.workloads)
    for index, workload in enumerate(task.workloads):
        _check_workload_name(f"workloads[{index}].name", workload.name)
        _check_parameters(f"workloads[{index}].parameters", workload.parameters)
        if not workload.devices:
            raise DataError(f"workloads[{index}].devices", "is empty: name cuda, cpu or both")
        if not workload.directions:
            raise DataError(f"workloads[{index}].directions", "is empty")


def _check_tolerance(task: Task) -> None:
    for name in ("constant", "growth"):
        value = getattr(task.tolerance, name)
        if not value >= 0:  # NaN is refused, too; without a bound, wrong kernels survive
            raise DataError(f"tolerance.{name}", f"is {value}: must be a number from 0")


def _check_integers(task: Task) -> None:
    """Refuse a parameter that the C signature hands over as an integer, and that is none."""
    scalars = task.c_signature.parameters if task.abi is Abi.C else ()
    bits = {p.name: int(p.dtype.removeprefix("int")) for p in scalars if p.dtype in _INTEGERS}
    for index, workload in enumerate(task.workloads):
        for name in sorted(bits.keys() & workload.parameters.keys()):
            value, most = workload.parameters[name], 2 ** (bits[name] - 1)
            if not isinstance(value, int) or not -most <= value < most:
                reason = f"is {value!r}: the signature has it as an integer of {bits[name]} bits"
                raise DataError(f"workloads[{index}].parameters.{name}", reason)


def check_count(workloads: Sequence[Any]) -> None:
    """Refuse more workloads than a task may have."""
    if len(workloads) > WORKLOADS_LIMIT:
        raise DataError("workloads", f"are more than {WORKLOADS_LIMIT}")


def _one_of(field: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise DataError(field, f"{value!r} is not one of {', '.join(allowed)}")


def _check_directions(task: Task) -> None:
    if not task.directions:
        raise DataError("directions", "is empty: name forward, backward or both")
    if len(set(task.directions)) != len(task.directions):
        raise DataError("directions", "names a direction twice")
    for direction in task.directions:
        if not any(direction in w.directions and not w.hidden for w in task.workloads):
            raise DataError("workloads", f"no public workload has the direction {direction.value}")
    for direction in task.work:
        if direction not in task.directions:
            raise DataError(f"work.{direction.value}", "the task has no such direction")


def _check_workload_name(field: str, name: str) -> None:
    if not name.strip() or len(name) > _WORKLOAD_NAME_LIMIT or not name.isprintable():
        raise DataError(field, f"must be 1 to {_WORKLOAD_NAME_LIMIT} printable characters")


def _check_parameters(field: str, parameters: Any) -> None:
    for name, value in parameters.items():
        if not _is_plain(value):
            raise DataError(f"{field}.{name}", "must be a number, a text, a truth value or a list")
    if len(json.dumps(encode(parameters))) > _PARAMETERS_LIMIT_BYTES:
        raise DataError(field, f"are longer than {_PARAMETERS_LIMIT_BYTES} bytes as JSON")


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _check_kernels(task: Task) -> None:
    for index, kernel in enumerate(task.kernels):
        field = f"kernels[{index}]"
        if kernel.path not in task.files:
            raise DataError(f"{field}.path", f"the task's folder has no file {kernel.path!r}")
        if not kernel.path.endswith(kernel.language.suffix):
            wanted = kernel.language.suffix
            raise DataError(f"{field}.path", f"a {kernel.language} kernel ends in {wanted}")
        if kernel.direction not in task.directions:
            raise DataError(f"{field}.direction", "the task has no such direction")
        if not _AGENT.fullmatch(kernel.agent):
            reason = "must be 1 to 100 of A-Z, a-z, 0-9, blanks and _ . : / @ + ( ) -"
            raise DataError(f"{field}.agent", f"{reason}, a letter or digit first")
        _check_source(task, kernel)


def _check_source(task: Task, kernel: ShippedKernel) -> None:
    """Refuse what could not be submitted: the site enters a public task's kernels by itself."""
    source = task.files[kernel.path]
    try:
        Solution(source=source, language=kernel.language, direction=kernel.direction)
    except DataError as error:
        raise DataError(
            f"files.{kernel.path}", f"is listed as a kernel, and {error.reason}"
        ) from None
