"""The sizes that a KernelBench file defines as globals, and which of them may be others.

Nothing is executed: constant expressions are evaluated over a syntax tree.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gpu_runner.data.formats.source import functions

Size = int | tuple[int, ...]
Shape = tuple[int, ...]
_Values = dict[str, Size]
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_LARGEST = 2**40  # of a size: more is a mistake, or meant to keep us busy
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_MOST = 256  # globals: a problem file has about ten
_MAKERS = ("rand", "randn", "zeros", "ones", "empty")  # torch.NAME(*shape)
_BOUNDED = "randint"  # torch.randint([low,] high, shape)


class _Unreadable(Exception):
    """An expression is none of constants, names of sizes, tuples and + - * //."""


@dataclass(frozen=True)
class Sizes:
    """What a problem file says of sizes.

    values: every global that is an integer above 0 or a tuple of such; roots: those that no other
    global gives; free: the roots that only get_inputs() reads, itself or through globals that they
    give, and there only to make tensors. Model does not depend on these.
    """

    values: Mapping[str, Size]
    roots: frozenset[str]
    free: tuple[str, ...]
    assignments: tuple[tuple[ast.expr, ast.expr], ...]
    makers: tuple[ast.Call, ...]

    @classmethod
    def read(cls, tree: ast.Module) -> Sizes:
        """Read a module that defines get_inputs()."""
        get_inputs = functions(tree)["get_inputs"]
        assignments = tuple(_assignments(tree))
        if len(assignments) > _MOST:
            assignments = ()
        values, givers, evaluated = _evaluate(assignments, {})
        makers = tuple(_makers(get_inputs))
        here = {id(node) for call in makers for node in _arguments(call)}
        here |= {id(node) for expression in evaluated for node in ast.walk(expression)}
        bound = {node.id for node in _globals_read(tree, frozenset()) if id(node) not in here}
        bound |= _own_names(get_inputs)
        for name in reversed(list(values)):  # what a bound global is made from is bound
            if name in bound:
                bound |= givers[name]
        roots = frozenset(name for name in values if not givers[name])
        used = {node.id for call in makers for node in _names(call)}
        for name in reversed(list(values)):
            if name in used:
                used |= givers[name]
        free = tuple(n for n in values if n in roots and n in used and n not in bound)
        return cls(values, roots, free, assignments, makers)

    def changed(self, changes: Mapping[str, Size]) -> dict[str, Size]:
        """Every global that is another one if these roots are: what get_inputs() must see."""
        values, _, _ = _evaluate(self.assignments, changes)
        return {name: size for name, size in values.items() if size != self.values.get(name)}

    def shapes(self, changes: Mapping[str, Size]) -> list[Shape] | None:
        """Shapes of the tensors that get_inputs() makes with these globals; None if unreadable.

        Those that repeat another tensor's shape, such as `torch.rand(x.shape)`, are left out.
        """
        values = {**self.values, **changes}
        calls = [call for call in self.makers if not _repeats(call)]
        try:
            return [_shape(call, values) for call in calls] or None
        except _Unreadable:
            return None


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


def _evaluate(
    assignments: tuple[tuple[ast.expr, ast.expr], ...], changes: Mapping[str, Size]
) -> tuple[_Values, dict[str, set[str]], list[ast.expr]]:
    """Values by name in the order of their last assignment, the names that give each, and what
    was evaluated."""
    values: _Values = {}
    givers: dict[str, set[str]] = {}
    evaluated: list[ast.expr] = []
    for target, expression in assignments:
        if not isinstance(target, ast.Name):
            continue
        values.pop(target.id, None)
        try:
            values[target.id] = changes.get(target.id, _size(expression, values))
        except _Unreadable:
            continue
        givers[target.id] = {node.id for node in _names(expression)}
        evaluated.append(expression)
    return values, givers, evaluated


def _size(node: ast.expr, values: Mapping[str, Size]) -> Size:
    """An integer above 0, or a tuple of such."""
    if isinstance(node, ast.Tuple | ast.List):
        items = [_size(item, values) for item in node.elts]
        if not items or not all(isinstance(item, int) for item in items):
            raise _Unreadable
        return tuple(item for item in items if isinstance(item, int))
    value = _value(node, values)
    if isinstance(value, int) and not 0 < value < _LARGEST:
        raise _Unreadable
    return value


def _value(node: ast.expr, values: Mapping[str, Size]) -> Size:
    match node:
        case ast.Constant(value=value) if type(value) is int and value < _LARGEST:
            return value
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            a, b = _value(left, values), _value(right, values)
            if (
                isinstance(a, int)
                and isinstance(b, int)
                and (b or not isinstance(op, ast.FloorDiv))
            ):
                result = _OPERATORS[type(op)](a, b)
                if abs(result) < _LARGEST:
                    return result
    raise _Unreadable


def _makers(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Calls of functions of torch that make a tensor of a shape."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name)):
                if name in (*_MAKERS, _BOUNDED):
                    yield node


def _arguments(call: ast.Call) -> Iterator[ast.AST]:
    for argument in call.args:
        yield from ast.walk(argument)


def _shape_arguments(call: ast.Call) -> list[ast.expr]:
    assert isinstance(call.func, ast.Attribute)
    arguments = call.args[-1:] if call.func.attr == _BOUNDED else call.args
    match arguments:
        case [ast.Tuple(elts=inner) | ast.List(elts=inner)]:
            return inner
    return arguments


def _repeats(call: ast.Call) -> bool:
    match _shape_arguments(call):
        case [ast.Attribute(attr="shape")]:
            return True
    return False


def _shape(call: ast.Call, values: Mapping[str, Size]) -> Shape:
    """The shape that a call of torch.rand() and its like is given."""
    shape: list[int] = []
    for argument in _shape_arguments(call):
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        size = _size(inner, values)
        shape += [size] if isinstance(size, int) else size
    return tuple(shape)


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
