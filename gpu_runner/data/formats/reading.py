"""What became of a file that was read as a task."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_runner.data.codec import DataError
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

    It has the standard library, einops, numpy, torch and the task's own files. Raises `DataError`
    naming the file.
    """
    own = {name.split("/")[0].removesuffix(".py") for name in files}
    for name, text in files.items():
        if name.endswith(".py"):
            for module in _imported(parse_module(text, name)):
                if module not in own | _INSTALLED | sys.stdlib_module_names:
                    raise DataError(name, f"imports {module}, which no runner has")


def _imported(tree: ast.Module) -> list[str]:
    """First parts of the names of the modules that a file imports on being imported itself."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            found += [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module.split(".")[0])
    return found
