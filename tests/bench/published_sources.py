"""CUDAMaster's published kernels in a checkout of MSKernelBench, as sources for our tasks.

`optimized/{fp32,bf16}/OPERATOR.cu`, or, where only its harness `test_OPERATOR.cu` is there, what
stands in that between two marks. Nothing of them is copied into this repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.mskernelbench import (
    HARNESS,
    PRECISIONS,
    SUFFIXES,
    exported,
    forwarding,
)
from gpu_runner.data.formats.text import read_text
from gpu_runner.data.signature import CParameter, Role, Signature
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi

FOLDER = "optimized"
ORIGIN = "origin"  # the naive kernels, which some published ones call
_START, _END = "// ==== OPTIMIZED KERNEL START ====", "// ==== OPTIMIZED KERNEL END ===="
_INCLUDE = re.compile(r"^[ \t]*#include[^\n]*$", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"__global__\s+void\s+(?P<name>\w+)\s*\((?P<parameters>[^(){};]*)\)\s*[;{]")


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published kernel as a source for a task. `notes`: how it was adapted, a sentence each."""

    label: str
    task: Task
    source: str
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A file that could not be made a kernel of a task, and why."""

    label: str
    reason: str


def published(
    repository: Path, tasks: Iterable[Task], precisions: Sequence[str] = tuple(PRECISIONS)
) -> Iterator[Published | Refused]:
    """All kernels of these precisions, by precision and name."""
    known = {(t.c_signature.symbol, t.dtype): t for t in tasks if t.abi is Abi.C}
    for precision in precisions:
        for operator in operators(repository / FOLDER / precision, SUFFIXES[precision]):
            label = f"{precision}-{operator}"
            task = known.get((operator + SUFFIXES[precision], PRECISIONS[precision]))
            if task is None:
                yield Refused(label=label, reason=f"no task of {precision} asks for it")
                continue
            try:
                yield _adapted(repository, precision, operator, task)
            except DataError as error:
                yield Refused(label=label, reason=str(error))


def operators(folder: Path, suffix: str) -> list[str]:
    """The operators of which a folder has a kernel or a harness; raises `DataError` for none."""
    names = {path.stem.removeprefix(HARNESS).removesuffix(suffix) for path in folder.glob("*.cu")}
    if not names:
        raise DataError("repository", f"{folder} holds no .cu file")
    return sorted(names, key=str.lower)


def _adapted(repository: Path, precision: str, operator: str, task: Task) -> Published:
    file = f"{operator}{SUFFIXES[precision]}.cu"
    kernel = repository / FOLDER / precision / file
    harness = kernel.with_name(HARNESS + file)
    notes = []
    if kernel.exists():
        source = read_text(kernel, kernel.name, SOURCE_LIMIT_BYTES)
    else:
        source = between_the_marks(_read(harness), harness.name)
        notes.append(f"was taken out of {harness.name}")
    declared, wanted = exported(source, file, operator), task.c_signature
    for name in missing_kernels(source):
        places = (harness, repository / ORIGIN / precision / file)
        found = next((d for p in places if (d := definition(_read(p), name))), None)
        if found is not None:
            source += f"\n\n{found}\n"
            notes.append(f"launches {name}, which it does not define: the baseline's was added")
    passed = arguments(declared, wanted)
    left = [p.name for p in wanted.parameters if p not in passed]
    if left:
        notes.append(f"takes no {' and no '.join(left)}: the value is fixed in its source")
    if declared.symbol != wanted.symbol:
        source += forwarding(declared, wanted, passed)
    return Published(label=f"{precision}-{operator}", task=task, source=source, notes=tuple(notes))


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def between_the_marks(harness: str, name: str) -> str:
    """A harness's candidate, after what the harness includes; raises `DataError` without one."""
    before, start, rest = harness.partition(_START)
    kernel, end, _ = rest.partition(_END)
    if not start or not end:
        raise DataError(name, f"has no kernel between {_START!r} and {_END!r}")
    return "\n".join([*(line.strip() for line in _INCLUDE.findall(before)), kernel.strip(), ""])


def missing_kernels(source: str) -> list[str]:
    """Kernels that a source declares and does not define."""
    found: dict[str, bool] = {}
    for match in _KERNEL.finditer(_COMMENT.sub(" ", source)):
        found[match["name"]] = found.get(match["name"], False) or match[0].endswith("{")
    return [name for name, defined in found.items() if not defined]


def definition(text: str, name: str) -> str | None:
    """The definition of a `__global__` function, from its first word to its last brace."""
    code = _COMMENT.sub(" ", text)
    for match in _KERNEL.finditer(code):
        if match["name"] == name and match[0].endswith("{"):
            depth, end = 1, match.end()
            while depth and end < len(code):
                depth += {"{": 1, "}": -1}.get(code[end], 0)
                end += 1
            return code[match.start() : end] if not depth else None
    return None


def arguments(declared: Signature, wanted: Signature) -> tuple[CParameter, ...]:
    """Which of the task's arguments each parameter of a kernel gets.

    By name where the task has all of its names, else by position; scalars may be left out. Raises
    `DataError` where they are passed in another way, or where an output would be const.
    """
    named = {parameter.name: parameter for parameter in wanted.parameters}
    passed = wanted.parameters
    if all(own.name in named for own in declared.parameters):
        passed = tuple(named[own.name] for own in declared.parameters)
    alike = len(passed) == len(declared.parameters) and all(
        _fits(own, given) for own, given in zip(declared.parameters, passed, strict=True)
    )
    pointers = {parameter for parameter in wanted.parameters if parameter.role is not Role.SCALAR}
    if not alike or not pointers <= set(passed):
        reason = f"is `{declared.text}`, which cannot be called from `{wanted.text}`"
        raise DataError("signature", reason)
    return passed


def _fits(own: CParameter, given: CParameter) -> bool:
    if own.role is Role.INPUT and given.role is Role.OUTPUT:
        return False
    pointers = Role.SCALAR not in (own.role, given.role)
    return own.dtype == given.dtype and (pointers or own.role is given.role)
