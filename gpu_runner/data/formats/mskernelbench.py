"""MSKernelBench's kernels, `origin/{fp32,bf16}/OPERATOR.cu`, as kernels of tasks that we have.

Such a file is a kernel without inputs, reference or tolerance: no task can be made of it. But where
a task has its symbol, its arguments and its precision, it is a kernel of that task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.text import read_text
from gpu_runner.data.signature import CParameter, Role, Signature
from gpu_runner.data.solution import SOURCE_LIMIT_BYTES, Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Language

FORMAT = "mskernelbench"
PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}
"""Names of the folders, and the dtypes of the tasks whose kernels lie in them."""
SUFFIXES = {"fp32": "", "bf16": "_bf16"}
"""What the symbols of each of these precisions end in."""
_FOLDERS = ("origin", "optimized")  # around those
HARNESS = "test_"
"""What the name of a file begins with that has kernels, inputs and a checker of its own."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_EXPORT = re.compile(r'extern\s+"C"\s+(void\s+\w+\s*\([^(){};]*\))\s*\{')


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A kernel for the task called `task`, and how its file was adapted: one sentence each."""

    task: str
    agent: str
    solution: Solution
    adaptations: tuple[str, ...]


def read_origin(path: Path, tasks: Iterable[Task]) -> Offer:
    """Match a file with one of `tasks`; raises `DataError` saying why it cannot be one's kernel.

    The folder around the file names its precision, the one around that its agent:
    `mskernelbench-origin` for the naive kernels, `mskernelbench-optimized` for the published ones.
    """
    precision = path.parent.name
    if precision not in PRECISIONS:
        raise DataError("path", f"{str(path)!r} isn't in a folder named {' or '.join(PRECISIONS)}")
    if path.name.startswith(HARNESS):
        raise DataError(path.name, "is a harness with its own checker, not a kernel")
    if path.is_symlink():
        raise DataError(path.name, "is a symbolic link; copy the file")
    source = read_text(path, path.name, SOURCE_LIMIT_BYTES)
    operator = path.stem.removesuffix(SUFFIXES[precision])
    symbol = operator + SUFFIXES[precision]
    declared = exported(source, path.name, operator)
    task = _task(tasks, PRECISIONS[precision], symbol, path.name)
    folder = path.resolve().parent.parent.name
    agent = f"{FORMAT}-{folder if folder in _FOLDERS else _FOLDERS[0]}"
    adaptations = [f"becomes a kernel of the built-in task {task.name}, by agent {agent}"]
    unread = _compare(declared, task, path.name)
    if unread:
        adaptations.append(f"doesn't declare these inputs as const: {', '.join(unread)}")
    if declared.symbol != task.c_signature.symbol:
        source += forwarding(declared, task.c_signature, task.c_signature.parameters)
        wanted = task.c_signature.symbol
        adaptations.append(f"gets an extra function {wanted}, which calls {declared.symbol}")
    return Offer(
        task=task.name,
        agent=agent,
        solution=Solution(source=source, language=Language.CUDA),
        adaptations=tuple(adaptations),
    )


def exported(source: str, name: str, operator: str) -> Signature:
    """The function that a file exports; of several the one that is named after the operator.

    Raises `DataError` (field `name`) unless there is one such function.
    """
    code = re.sub(r"\b__restrict(__)?\b", " ", _COMMENT.sub(" ", source))
    exports = [Signature.parse(found) for found in _EXPORT.findall(code)]
    named = [export for export in exports if export.symbol.startswith(operator)]
    for candidates in (exports, named):
        if len(candidates) == 1:
            return candidates[0]
    raise DataError(name, f'must define one extern "C" void NAME(...), but defines {len(exports)}')


def _task(tasks: Iterable[Task], dtype: str, symbol: str, name: str) -> Task:
    for task in tasks:
        if task.abi is Abi.C and task.dtype == dtype and task.c_signature.symbol == symbol:
            return task
    raise DataError(name, f"no built-in task in {dtype} uses {symbol}()")


def _compare(declared: Signature, task: Task, name: str) -> list[str]:
    """Names of the file's pointers that lack a const; refuses other arguments than the task's."""
    wanted = task.c_signature
    if [_passed(p) for p in declared.parameters] != [_passed(p) for p in wanted.parameters]:
        raise DataError(name, f"has `{declared.text}`, but {task.name} needs `{wanted.text}`")
    pairs = zip(declared.parameters, wanted.parameters, strict=True)
    for ours, theirs in pairs:
        if ours.role is Role.INPUT and theirs.role is Role.OUTPUT:
            raise DataError(name, f"declares {ours.name} as const, but {task.name} writes to it")
    return [
        ours.name
        for ours, theirs in zip(declared.parameters, wanted.parameters, strict=True)
        if theirs.role is Role.INPUT and ours.role is not Role.INPUT
    ]


def _passed(parameter: CParameter) -> tuple[str, bool]:
    """How a caller passes it: the type's dtype, and whether by pointer."""
    return parameter.dtype, parameter.role is not Role.SCALAR


def forwarding(declared: Signature, wanted: Signature, passed: Sequence[CParameter]) -> str:
    """A definition of `wanted` that calls `declared`, with these parameters in this order.

    It has the task's declaration, as the builder declares that before every source: the same
    function with other consts would be a second one of C linkage.
    """
    arguments = ", ".join(
        f"const_cast<{own.ctype}*>({given.name})"
        if given.role is Role.INPUT and own.role is not Role.INPUT
        else given.name
        for own, given in zip(declared.parameters, passed, strict=True)
    )
    return f'\n\nextern "C" {wanted.text} {{\n    {declared.symbol}({arguments});\n}}\n'
