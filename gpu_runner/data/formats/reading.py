"""What became of a file that was read as a task."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_runner.data.codec import DataError, refuse
from gpu_runner.data.formats.source import parse_module
from gpu_runner.data.task import Task

_INSTALLED = frozenset({"einops", "numpy", "torch"})


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A task, and where it differs from what its files say.

    adaptations: one sentence for each difference; remarks: what else somebody should know.
    """

    task: Task
    adaptations: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def check_imports(files: Mapping[str, str]) -> None:
    """Refuse Python files that import what an oracle's jail does not have.

    Raises `DataErrors` naming the files.
    """
    refuse(import_errors(files))


def import_errors(files: Mapping[str, str]) -> Iterator[DataError]:
    """The Python files that import what an oracle's jail does not have.

    It has the standard library, einops, numpy, torch and the task's own files. Raises `DataError`
    naming the file that is not Python.
    """
    own = {name.split("/")[0].removesuffix(".py") for name in files}
    known = own | _INSTALLED | sys.stdlib_module_names
    for name, text in files.items():
        if name.endswith(".py"):
            imported = _imported(parse_module(text, name))
            foreign = {module: line for module, line in imported.items() if module not in known}
            if foreign:
                line = min(foreign.values())
                words = f"imports {', '.join(foreign)}, which runners don't have (line {line})"
                yield DataError(name, words, line)


def _imported(tree: ast.Module) -> dict[str, int]:
    """First parts of the names of the modules that a file imports on being imported itself.

    With the line of each.
    """
    found: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name.split(".")[0], node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.setdefault(node.module.split(".")[0], node.lineno)
    return found
