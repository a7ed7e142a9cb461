"""A Python module as its rules see it: the syntax tree, and what its names stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gpu_runner.data.task import Task

_TEXT_MARKS = ("PYBIND11_MODULE", "__global__", "#include", "torch::Tensor", 'extern "C"')


class Unparsed(Exception):
    """The source is no Python that can be read here."""


@dataclass(frozen=True)
class ModuleCase:
    """One module with the task that it is for."""

    tree: ast.Module
    task: Task

    @classmethod
    def read(cls, source: str, task: Task) -> ModuleCase:
        """Parse a source; nothing of it is executed. Raises `Unparsed`."""
        try:
            return cls(ast.parse(source), task)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise Unparsed from None

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node, outer ones first."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> dict[str, int]:
        """Full names of what is imported, with the line."""
        found: dict[str, int] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found.setdefault(alias.name, node.lineno)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found.setdefault(f"{node.module}.{alias.name}", node.lineno)
        return found

    @cached_property
    def _meanings(self) -> dict[str, str]:
        """What a name stands for, by the imports."""
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    found[alias.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return found

    def dotted(self, node: ast.AST) -> str:
        """The full name of what an expression names, such as torch.nn.functional.relu; or empty.

        Of an import alone: a variable of the module's own has none.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._meanings:
            return ""
        return ".".join([self._meanings[node.id], *reversed(parts)])

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call, with the full name of what is called, where it has one."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                yield node, self.dotted(node.func)

    def uses(self) -> Iterator[tuple[str, int]]:
        """Every full name that is used, with its line."""
        for node in self.nodes:
            if isinstance(node, ast.Attribute | ast.Name) and (name := self.dotted(node)):
                yield name, node.lineno

    def texts(self) -> Iterator[tuple[str, int]]:
        """Strings that hold C++ or CUDA, with the line on which they begin."""
        for node in self.nodes:
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if any(mark in node.value for mark in _TEXT_MARKS):
                yield node.value, node.lineno
