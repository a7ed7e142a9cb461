"""What a Python source does in any case, read from its text; nothing of it is executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MAYBE = (ast.If, ast.IfExp, ast.Try, ast.TryStar, ast.Match, ast.BoolOp, ast.For, ast.While)


def tree_of(source: str) -> ast.AST | None:
    """The source's syntax tree; None where it has none."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def unconditional(node: ast.AST, *, calls: bool = False) -> list[ast.AST]:
    """What each import of a module runs, outside of all conditions; with `calls`, functions too.

    An import that may fail stands in a `try`, and what only some devices need behind an `if`.
    """
    left_out = _MAYBE if calls else _LATER + _MAYBE
    found, left = [], [node]
    while left:
        found.append(left.pop())
        left += [
            child for child in ast.iter_child_nodes(found[-1]) if not isinstance(child, left_out)
        ]
    return found


def imported_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names of modules that these import, and of what they take from them: `cuda.tile`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_within(name: str, package: str) -> bool:
    """Whether a dotted name is a package, or something in it."""
    return name == package or name.startswith(f"{package}.")
