"""robust-kbench task folders: func_forward.py, func_backward.py and config_*.json, as they are."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.naming import task_name, task_title
from gpu_runner.data.formats.reading import Reading, check_imports, import_errors
from gpu_runner.data.formats.robust_source import RobustSource
from gpu_runner.data.formats.task_errors import usable_task
from gpu_runner.data.formats.text import object_of, read_files
from gpu_runner.data.task import ShippedKernel, Task, TaskFormat, Tolerance, Workload
from gpu_runner.data.verdict import Abi, Direction, Language

UNKNOWN_REDUCTION = Tolerance(reduction="4096")
"""Tolerance of tasks that do not say how long their sums are: some 270 units in the last place.

The engine narrows it per element where it can trace the reference.
"""
ORIGIN_AGENT = "origin"
_KINDS = ("single", "multi")
_ARGUMENTS = ("inputs", "init")
_TAKERS = {"init": ("init",), "input": ("inputs",), "shared": ("init", "inputs")}
_WORKLOADS_LIMIT = 256  # chosen: every one of them is measured
_NAME_LIMIT = 160  # chosen: below the limit of a workload's name


def read_robust_kbench(folder: Path) -> Reading:
    """Read a robust-kbench task folder; raises `DataError` naming the file or the field.

    Workloads are that benchmark's run set: init x input x shared configurations, the shared ones
    overriding both. Its `single` ones, on which it publishes times, are listed; its `multi` ones,
    with which it tests that a kernel generalises, are hidden.
    """
    if not folder.is_dir():
        raise DataError("path", f"{str(folder)!r} is not a folder")
    files = read_files(folder, robust_files(folder))
    directions = tuple(d for d in Direction if _function_file(d) in files)
    if Direction.FORWARD not in directions:
        raise DataError(_function_file(Direction.FORWARD), f"is missing from {folder}")
    check_imports(files)
    sources = {d: RobustSource.parse(files[_function_file(d)], d) for d in directions}
    workloads: dict[str, Workload] = {}
    for source in sources.values():
        for workload in _workloads(files, source):
            _merge(workloads, workload)
    task = usable_task(
        Task(
            name=task_name(folder),
            title=task_title(folder),
            format=TaskFormat.ROBUST_KBENCH,
            abi=Abi.TORCH,
            scenario="networks",
            description=_description(sources),
            directions=directions,
            workloads=tuple(sorted(workloads.values(), key=lambda w: w.hidden)),
            files=files,
            tolerance=UNKNOWN_REDUCTION,
            kernels=tuple(_kernel(d) for d in directions if f"{d}.cu" in files),
        )
    )
    return Reading(task=task, adaptations=tuple(_adaptations(files, sources)))


def function_errors(task: Task) -> Iterator[DataError]:
    """Functions that the oracle calls and the files lack, and workloads that do not fit to them;
    wrong imports."""
    yield from import_errors(task.files)
    for direction in task.directions:
        name = _function_file(direction)
        if name not in task.files:
            yield DataError(name, "is missing from the task's folder")
            continue
        try:
            source = RobustSource.parse(task.files[name], direction)
        except DataError as error:
            yield error
            continue
        for index, workload in enumerate(task.workloads):
            if direction in workload.directions:
                field = f"workloads[{index}].parameters"
                yield from _workload_errors(source, workload.parameters, field)


def _workload_errors(
    source: RobustSource, parameters: Mapping[str, Any], field: str
) -> Iterator[DataError]:
    """Whether they are keyword arguments of get_inputs and of Model."""
    missing = [p for p in _ARGUMENTS if not isinstance(parameters.get(p), Mapping)]
    for part in missing:
        yield DataError(f"{field}.{part}", "must be a table of keyword arguments")
    for part in parameters:
        if part not in _ARGUMENTS:
            yield DataError(f"{field}.{part}", "is unknown: use inputs or init")
    if not missing:
        yield from source.errors(dict(parameters), f"{field}.inputs", f"{field}.init")


def _adaptations(
    files: Mapping[str, str], sources: Mapping[Direction, RobustSource]
) -> Iterator[str]:
    """Sentences about keys of configurations that no function takes."""
    for direction, source in sources.items():
        name = f"config_{direction}.json"
        configs = object_of(files[name], name)
        for part, takers in _TAKERS.items():
            entries = [e for kind in _KINDS for e in _entries(configs, kind, part, name)]
            given = {key: None for entry in entries for key in entry}
            taken = source.accepted(given, given)
            for key in given:
                if not any(key in taken[taker] for taker in takers):
                    yield f"{name}: ignores {part}'s {key}, which its function does not take"


def _kernel(direction: Direction) -> ShippedKernel:
    return ShippedKernel(
        path=f"{direction}.cu", agent=ORIGIN_AGENT, language=Language.CUDA, direction=direction
    )


def robust_files(folder: Path) -> list[str]:
    """Names of the files in a folder that belong to a task of this format, if it is one."""
    wanted = (
        f"{start}{direction}{end}"
        for direction in Direction
        for start, end in (("func_", ".py"), ("config_", ".json"), ("", ".cu"))
    )
    return [name for name in wanted if (folder / name).exists()]


def _function_file(direction: Direction) -> str:
    return f"func_{direction}.py"


FORWARD_FILE = _function_file(Direction.FORWARD)


def _workloads(files: Mapping[str, str], source: RobustSource) -> Iterator[Workload]:
    """The distinct run set of one direction; two that differ by spelt-out defaults are one."""
    name = f"config_{source.direction}.json"
    if name not in files:
        raise DataError(name, "is missing from the task's folder")
    configs = object_of(files[name], name)
    seen: set[str] = set()
    for kind in _KINDS:
        lists = (_entries(configs, kind, part, name) for part in _TAKERS)
        for init, inputs, shared in itertools.product(*lists):
            parameters = source.accepted({**init, **shared}, {**inputs, **shared})
            start = f"{name}: {kind}"
            source.check(parameters, f"{start}_input_configs", f"{start}_init_configs")
            key = json.dumps(source.with_defaults(parameters), sort_keys=True)
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > _WORKLOADS_LIMIT:
                raise DataError(name, f"has more than {_WORKLOADS_LIMIT} combinations")
            yield Workload(
                name=_workload_name(parameters),
                parameters=parameters,
                hidden=kind == "multi",
                directions=(source.direction,),
            )


def _entries(
    configs: dict[str, object], kind: str, part: str, name: str
) -> list[dict[str, object]]:
    field = f"{kind}_{part}_configs"
    optional: list[dict[str, object]] = [{}] if kind == "single" else []
    entries = configs.get(field, optional)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{name}: {field}", "must be a list of objects")
    return entries


def _workload_name(parameters: Mapping[str, Mapping[str, object]]) -> str:
    """`batch_size=64,eps=1e-08`, inputs first; a key that differs between them says which."""
    inputs, init = parameters["inputs"], parameters["init"]
    words = [f"{key}={_word(value)}" for key, value in inputs.items()]
    for key, value in init.items():
        if key not in inputs:
            words.append(f"{key}={_word(value)}")
        elif inputs[key] != value:
            words.append(f"init.{key}={_word(value)}")
    return ",".join(words)[:_NAME_LIMIT] or "default"


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=("x", ":"))


def _merge(workloads: dict[str, Workload], new: Workload) -> None:
    """Add `new`: the same parameters in the other direction are one workload."""
    for number in itertools.count(1):
        name = new.name if number == 1 else f"{new.name}#{number}"
        old = workloads.get(name)
        if old is None:
            workloads[name] = replace(new, name=name)
            return
        if old.parameters == new.parameters and old.hidden == new.hidden:
            workloads[name] = replace(old, directions=old.directions + new.directions)
            return


def _description(sources: Mapping[Direction, RobustSource]) -> str:
    forward = sources[Direction.FORWARD]
    parts = [forward.docstring] if forward.docstring else []
    parts += [source.call_description() for source in sources.values()]
    parts.append(
        "Arguments must not be changed, running statistics of normalizations included: "
        "only what the function returns is judged."
    )
    return "\n\n".join(parts)


def is_robust_kbench(folder: Path) -> bool:
    """Whether the folder looks like a robust-kbench task."""
    return (folder / _function_file(Direction.FORWARD)).exists()
