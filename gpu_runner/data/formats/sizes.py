"""The sizes that a KernelBench file defines as globals, and which of them may be others.

Nothing is executed: the file is followed over its syntax tree (`follow`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_runner.data.formats.follow import Followed, Unfollowed
from gpu_runner.data.formats.source import functions

Size = int | tuple[int, ...]
Shape = tuple[int, ...]
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Sizes:
    """What a problem file says of sizes.

    values: every global that is an integer above 0 or a tuple of such; roots: those that no other
    of these gives; free: the roots that only get_inputs() reads, itself or through globals that
    they give. Model reads none of these, but it may expect what they are.
    """

    tree: ast.Module
    values: Mapping[str, Size]
    roots: frozenset[str]
    free: tuple[str, ...]

    @classmethod
    def read(cls, tree: ast.Module) -> Sizes:
        """Read a module that defines get_inputs()."""
        values = _sizes(Followed(tree).names)
        givers: dict[str, set[str]] = {name: set() for name in values}
        here = {id(node) for part in functions(tree)["get_inputs"].body for node in ast.walk(part)}
        for target, expression in _assignments(tree):
            if isinstance(target, ast.Name) and target.id in values:
                givers[target.id] |= {node.id for node in _names(expression)} & values.keys()
                here |= {id(node) for node in ast.walk(expression)}
        bound = {node.id for node in _globals_read(tree, frozenset()) if id(node) not in here}
        bound |= _own_names(functions(tree)["get_inputs"])
        for name in reversed(list(values)):  # what a bound global is made from is bound
            if name in bound:
                bound |= givers[name]
        roots = frozenset(name for name in values if not givers[name])
        return cls(tree, values, roots, tuple(n for n in values if n in roots - bound))

    def changed(self, changes: Mapping[str, Size]) -> dict[str, Size]:
        """Every global that is another one if these roots are: what get_inputs() must see."""
        values = _sizes(Followed(self.tree, changes).names)
        return {name: size for name, size in values.items() if size != self.values.get(name)}

    def shapes(self, changes: Mapping[str, Size]) -> list[Shape] | None:
        """Shapes of the tensors that get_inputs() makes with these globals; None if unreadable."""
        try:
            return Followed(self.tree).shapes(changes)
        except Unfollowed:
            return None

    def unfit(self, changes: Mapping[str, Size]) -> str:
        """Why it is not sure that Model takes what get_inputs() makes with these globals, or ""."""
        try:
            Followed(self.tree).outputs(changes)
        except Unfollowed as error:
            return str(error)
        return ""


def _sizes(names: Mapping[str, Any]) -> dict[str, Size]:
    """Of a module's globals those that are sizes."""
    found: dict[str, Size] = {}
    for name, value in names.items():
        items = value if isinstance(value, tuple | list) else (value,)
        if items and all(type(item) is int and item > 0 for item in items):
            found[name] = tuple(items) if isinstance(value, tuple | list) else value
    return found


def _assignments(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of target and value of the module's plain assignments, in order."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            yield from zip(targets, values, strict=True)
        case _:
            yield target, value


def _names(tree: ast.AST) -> Iterator[ast.Name]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Name))


def _globals_read(node: ast.AST, own: frozenset[str]) -> Iterator[ast.Name]:
    """The names read under `node` that are no variable of a function around them."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in own:
            yield node
        return
    for field, value in ast.iter_fields(node):
        inside = isinstance(node, _Function) and field == "body"
        names = own | _own_names(node) if isinstance(node, _Function) and inside else own
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.arguments):  # defaults are read outside
                for default in (*child.defaults, *child.kw_defaults):
                    yield from _globals_read(default, own) if default is not None else ()
            elif isinstance(child, ast.AST):
                yield from _globals_read(child, names)


def _own_names(function: _Function) -> frozenset[str]:
    """Names that a function binds: its parameters and variables, which hide globals."""
    told = {n for node in ast.walk(function) if isinstance(node, ast.Global) for n in node.names}
    own = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    own |= {node.id for node in _names(function) if not isinstance(node.ctx, ast.Load)}
    return frozenset(own - told)
