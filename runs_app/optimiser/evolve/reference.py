"""The part of a task's reference that one direction's kernels need to see."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from gpu_runner.data.verdict import Direction

_BASELINES = ("baseline_fn",)
_BACKWARD = "backward"


def reference_for(source: str, direction: Direction) -> str:
    """A reference without baselines, and of a forward task without what is backward's alone.

    Functions and constants go that only such code uses. A source that is no Python stays whole, and
    so does what it is not sure of.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source
    named = {name: node for node in module.body if (name := _name_of(node))}
    dropped = {name for name in named if _is_elsewhere(name, direction)}
    if not dropped:
        return source
    kept = _used_by(named, (name for name in named if name not in dropped and _is_entry(name)))
    kept |= _used_by(named, _names_in(node for node in module.body if not _name_of(node)))
    alone = _used_by(named, dropped) - kept
    gone = [named[name] for name in alone | dropped - kept]
    return _without(source, gone)


def files_for(files: Mapping[str, str], direction: Direction) -> dict[str, str]:
    """A reference's files, without the one that is the other direction's where each has its own."""
    mine, other = (f"func_{each}.py" for each in (direction, _other(direction)))
    return {path: text for path, text in files.items() if path != other or mine not in files}


def description_for(text: str, direction: Direction) -> str:
    """A description, without the paragraph that says what the other direction's kernels export."""
    other = f"The extension exports `{_other(direction)}("
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith(other))


def _other(direction: Direction) -> Direction:
    return Direction.BACKWARD if direction is Direction.FORWARD else Direction.FORWARD


def _is_elsewhere(name: str, direction: Direction) -> bool:
    is_backward = direction is Direction.FORWARD and name.startswith(_BACKWARD)
    return name in _BASELINES or is_backward


def _is_entry(name: str) -> bool:
    """Whether the oracle may call it. A helper or a constant is there for what uses it."""
    return not name.startswith("_") and not name.isupper()


def _name_of(node: ast.stmt) -> str:
    """The name that a statement of a module defines, where it defines one."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        return target.id if isinstance(target, ast.Name) else ""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def _used_by(named: dict[str, ast.stmt], names: Iterable[str]) -> set[str]:
    """Those definitions, and all that they use."""
    found: set[str] = set()
    waiting = [name for name in names if name in named]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [other for other in _names_in([named[name]]) if other in named]
    return found


def _names_in(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                yield part.id


def _without(source: str, nodes: Iterable[ast.stmt]) -> str:
    """The text without the lines of these statements, decorators, docstrings and comments above."""
    lines = source.splitlines()
    for node in sorted(nodes, key=lambda node: node.lineno, reverse=True):
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)]) - 1
        last = node.end_lineno or node.lineno
        while first and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        if last < len(lines) and lines[last].lstrip().startswith('"""'):  # a constant's words
            last += 1
            while not lines[last - 1].rstrip().endswith('"""') and last < len(lines):
                last += 1
        while last < len(lines) and not lines[last].strip():
            last += 1
        del lines[first:last]
    return "\n".join(lines).rstrip() + "\n"
