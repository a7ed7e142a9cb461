"""The globals that a KernelBench file gives its sizes, and which of them may be others.

Nothing is executed: this is what the syntax tree tells.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gpu_runner.data.formats.source import functions

Size = int | tuple[int, ...]
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Globals:
    """What a module that defines get_inputs() assigns.

    names: every global, in order; bound: those that are read by more than get_inputs(), itself or
    through globals that they give; free: those of the others that no other one gives. Model reads
    no free one, but it may expect what they are.
    """

    names: tuple[str, ...]
    bound: frozenset[str]
    free: tuple[str, ...]

    @classmethod
    def read(cls, tree: ast.Module, sizes: Collection[str] | None = None) -> Globals:
        """Read a module; `sizes` are the names of the globals to look at, all if left out."""
        pairs = list(_assignments(tree))
        names = tuple(dict.fromkeys(n for n, _ in pairs if sizes is None or n in sizes))
        givers: dict[str, set[str]] = {name: set() for name in names}
        here = {id(node) for part in functions(tree)["get_inputs"].body for node in ast.walk(part)}
        for name, expression in pairs:
            if name in givers:
                givers[name] |= {node.id for node in _names(expression)} & givers.keys()
                here |= {id(node) for node in ast.walk(expression)}
        bound = {node.id for node in _globals_read(tree, frozenset()) if id(node) not in here}
        bound |= _own_names(functions(tree)["get_inputs"])
        for name in reversed(names):  # what a bound global is made from is bound
            if name in bound:
                bound |= givers[name]
        free = tuple(name for name in names if not givers[name] and name not in bound)
        return cls(names, frozenset(bound), free)


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names that the module's plain assignments bind, each with what gives it, in order."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _pairs(node.target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for one, its in zip(targets, values, strict=True):
                yield from _pairs(one, its)
        case _:
            yield from ((n.id, value) for n in _names(target) if isinstance(n.ctx, ast.Store))


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
