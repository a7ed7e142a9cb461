"""What a Python source does in any case, read from its text; nothing of it is executed."""

from __future__ import annotations

import ast
from collections import deque
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


def bound_names(tree: ast.Module) -> set[str]:
    """Names that a module may bind, in conditions, too; "*" if it takes all of another module."""
    found, left = set(), list[ast.AST](tree.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        left += ast.iter_child_nodes(node)
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


def imported_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, outer ones first, but what only a program runs.

    That is the block under `if __name__ == "__main__":`, in a source that binds no such name.
    """
    every = list(ast.walk(tree))
    if any(map(_binds_name, every)):
        yield from every
        return
    left = deque([tree])
    while left:
        node = left.popleft()
        yield node
        if isinstance(node, ast.If) and _asks_for_main(node.test):
            left += node.orelse
        else:
            left += ast.iter_child_nodes(node)


def _binds_name(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id == "__name__" and not isinstance(node.ctx, ast.Load)
    return "__name__" in (getattr(node, field, None) for field in ("name", "asname", "arg", "rest"))


def _asks_for_main(test: ast.expr) -> bool:
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")
