"""MSKernelBench's kernels, `origin/{fp32,bf16}/OPERATOR.cu`, as kernels of tasks that we have.

Such a file is a kernel without inputs, reference or tolerance: no task can be made of it. But where
a task has its symbol, its arguments and its precision, it is a kernel of that task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
_SUFFIXES = {"fp32": "", "bf16": "_bf16"}  # of symbols
_FOLDERS = ("origin", "optimized")  # around those
_HARNESS = "test_"
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
        raise DataError("path", f"{str(path)!r} lies in no folder {' or '.join(PRECISIONS)}")
    if path.name.startswith(_HARNESS):
        raise DataError(path.name, "is a harness with a checker of its own, not a kernel")
    if path.is_symlink():
        raise DataError(path.name, "is a symbolic link; copy the file")
    source = read_text(path, path.name, SOURCE_LIMIT_BYTES)
    operator = path.stem.removesuffix(_SUFFIXES[precision])
    symbol = operator + _SUFFIXES[precision]
    declared = _declared(source, path.name, operator)
    task = _task(tasks, PRECISIONS[precision], symbol, path.name)
    folder = path.resolve().parent.parent.name
    agent = f"{FORMAT}-{folder if folder in _FOLDERS else _FOLDERS[0]}"
    adaptations = [f"is offered as a kernel of the built-in task {task.name}, agent {agent}"]
    unread = _compare(declared, task, path.name)
    if unread:
        adaptations.append(f"does not declare {', '.join(unread)} const, which the task only reads")
    if declared.symbol != task.c_signature.symbol:
        source += _forwarding(declared, task.c_signature.symbol)
        wanted = task.c_signature.symbol
        adaptations.append(f"gets a function {wanted}, which calls its {declared.symbol}")
    return Offer(
        task=task.name,
        agent=agent,
        solution=Solution(source=source, language=Language.CUDA),
        adaptations=tuple(adaptations),
    )


def _declared(source: str, name: str, operator: str) -> Signature:
    """The function that the file exports; of several the one that is named after the operator."""
    code = re.sub(r"\b__restrict(__)?\b", " ", _COMMENT.sub(" ", source))
    exports = [Signature.parse(found) for found in _EXPORT.findall(code)]
    named = [export for export in exports if export.symbol.startswith(operator)]
    for candidates in (exports, named):
        if len(candidates) == 1:
            return candidates[0]
    raise DataError(name, f'defines {len(exports)} functions extern "C" void NAME(...), not one')


def _task(tasks: Iterable[Task], dtype: str, symbol: str, name: str) -> Task:
    for task in tasks:
        if task.abi is Abi.C and task.dtype == dtype and task.c_signature.symbol == symbol:
            return task
    raise DataError(name, f"no built-in task of {dtype} asks for {symbol}()")


def _compare(declared: Signature, task: Task, name: str) -> list[str]:
    """Names of the file's pointers that lack a const; refuses other arguments than the task's."""
    wanted = task.c_signature
    if [_passed(p) for p in declared.parameters] != [_passed(p) for p in wanted.parameters]:
        raise DataError(name, f"is `{declared.text}`, but {task.name} asks for `{wanted.text}`")
    pairs = zip(declared.parameters, wanted.parameters, strict=True)
    for ours, theirs in pairs:
        if ours.role is Role.INPUT and theirs.role is Role.OUTPUT:
            raise DataError(name, f"declares {ours.name} const, which {task.name} has written")
    return [
        ours.name
        for ours, theirs in zip(declared.parameters, wanted.parameters, strict=True)
        if theirs.role is Role.INPUT and ours.role is not Role.INPUT
    ]


def _passed(parameter: CParameter) -> tuple[str, bool]:
    """How a caller passes it: the type's dtype, and whether by pointer."""
    return parameter.dtype, parameter.role is not Role.SCALAR


def _forwarding(declared: Signature, symbol: str) -> str:
    own = declared.text.replace(declared.symbol, symbol, 1)
    names = ", ".join(parameter.name for parameter in declared.parameters)
    return f'\n\nextern "C" {own} {{\n    {declared.symbol}({names});\n}}\n'
