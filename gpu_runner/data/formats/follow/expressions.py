"""Expressions of a program, evaluated with shapes in the place of tensors. Nothing is executed."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpu_runner.data.formats.follow.moves import indexed
from gpu_runner.data.formats.follow.python import is_true, items_of, number
from gpu_runner.data.formats.follow.values import (
    MOST_ITEMS,
    UNKNOWN,
    Function,
    Layer,
    Library,
    Scope,
    Tensor,
    Unfollowed,
    Unknown,
    few,
    known,
    whole,
)

STEPS_LIMIT = 60_000
"""Parts of a program that are looked at, repetitions counted; KernelBench's need 20,000 at most."""
_ITEMS_A_STEP = 8  # chosen: to copy eight items is no dearer than one step
_LARGEST_POWER = 64  # chosen: more leads beyond 64 bits
_LONGEST_TEXT = 4096  # chosen: a name of a layer or a message is shorter

_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in items_of(b),
    ast.NotIn: lambda a, b: a not in items_of(b),
}
FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
"""What Python raises on values that do not fit; here it says that nothing is known."""


class Expressions(ABC):
    """Evaluates expressions; functions and classes are called by the program (`Program`)."""

    steps = 0

    @abstractmethod
    def call(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call something with arguments."""

    @abstractmethod
    def attribute(self, value: Any, name: str) -> Any:
        """An attribute of a value."""

    @abstractmethod
    def missing(self, name: str) -> Any:
        """A name that no scope has."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Give a value to a name, an attribute or a place."""

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """Value of an expression; raises `Unfollowed` where it cannot be told."""
        evaluate = getattr(self, f"_{type(node).__name__.lower()}", None)
        if evaluate is None:
            raise Unfollowed(f"a {type(node).__name__}")
        try:
            found = evaluate(node, scope)
        except FAILURES as error:
            raise Unfollowed(f"{type(error).__name__} in line {node.lineno}") from None
        self.step(found)
        return found

    def step(self, made: Any = None) -> None:
        """Count a step, of which there are not too many; who has made a list has made several."""
        self.steps += 1
        if isinstance(made, list | tuple):
            self.steps += len(made) // _ITEMS_A_STEP
        if self.steps > STEPS_LIMIT:
            raise Unfollowed("a program of too many steps")

    def _constant(self, node: ast.Constant, scope: Scope) -> Any:
        value = node.value
        return number(value) if isinstance(value, int | complex) else value

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        try:
            return scope.find(node.id)
        except KeyError:
            return self.missing(node.id)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute(self.value(node.value, scope), node.attr)

    def _items(self, nodes: list[ast.expr], scope: Scope) -> list[Any]:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items += items_of(self.value(node.value, scope))
            else:
                items.append(self.value(node, scope))
        few(items)
        return items

    def _tuple(self, node: ast.Tuple, scope: Scope) -> tuple[Any, ...]:
        return tuple(self._items(node.elts, scope))

    def _list(self, node: ast.List, scope: Scope) -> list[Any]:
        return self._items(node.elts, scope)

    def _set(self, node: ast.Set, scope: Scope) -> set[Any]:
        return set(self._items(node.elts, scope))

    def _dict(self, node: ast.Dict, scope: Scope) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found |= self.value(value, scope)
            else:
                found[self.value(key, scope)] = self.value(value, scope)
        return found

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self._super(node, scope)
        function = self.value(node.func, scope)
        args = tuple(self._items(node.args, scope))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            kwargs |= {keyword.arg: value} if keyword.arg is not None else value
        return self.call(function, args, kwargs)

    def _super(self, node: ast.Call, scope: Scope) -> Any:
        """Stands for `super()`: an instance and the class after which to look."""
        inner: Scope | None = scope
        while inner is not None and inner.owner is None:
            inner = inner.outer
        if inner is None:
            raise Unfollowed("super() outside of a class")
        return Super(inner.first, inner.owner)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        value, key = self.value(node.value, scope), self.value(node.slice, scope)
        return self.item(value, key)

    def item(self, value: Any, key: Any) -> Any:
        """`value[key]`."""
        if isinstance(value, Tensor):
            return indexed(value, key)
        if isinstance(value, Layer):
            if isinstance(key, slice):
                parts = dict(enumerate(items_of(value)[key]))
                return Layer(value.kind, {}, {str(at): part for at, part in parts.items()})
            return value.parts[key] if isinstance(key, str) else list(value.parts.values())[key]
        if isinstance(value, Library):  # of a type, such as List[int]
            return value
        if not isinstance(value, tuple | list | dict | str):
            raise Unfollowed("a part of something that is not known")
        return value[known(key)]

    def _slice(self, node: ast.Slice, scope: Scope) -> slice:
        bounds = (node.lower, node.upper, node.step)
        return slice(*(self.value(b, scope) if b is not None else None for b in bounds))

    def _binop(self, node: ast.BinOp, scope: Scope) -> Any:
        return self.combined(node.op, self.value(node.left, scope), self.value(node.right, scope))

    def combined(self, op: ast.operator, a: Any, b: Any) -> Any:
        """Two values and an operator between them."""
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            name = "matmul" if isinstance(op, ast.MatMult) else "add"
            return self.call(Library(f"tensor.{name}"), (a, b), {})
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            raise Unfollowed("a value that is not known")
        if isinstance(a, tuple | list) or isinstance(b, tuple | list):
            return _joined(op, a, b)
        if isinstance(a, str) or isinstance(b, str):
            return _text(op, a, b)
        if isinstance(a, dict) and isinstance(b, dict) and isinstance(op, ast.BitOr):
            return a | b
        if not all(isinstance(v, int | float) for v in (a, b)):
            raise Unfollowed("an operation on what are no numbers")
        if isinstance(op, ast.Pow | ast.LShift) and abs(b) > _LARGEST_POWER and abs(a) > 1:
            raise Unfollowed("a number that is too large")
        return number(_NUMBERS[type(op)](a, b))

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return not is_true(value)
        if isinstance(value, Tensor):
            return value
        if not isinstance(value, int | float):
            raise Unfollowed("an operation on what is no number")
        if isinstance(node.op, ast.Invert):
            return ~whole(value)
        return -value if isinstance(node.op, ast.USub) else value

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        stops = isinstance(node.op, ast.Or)
        value: Any = None
        for operand in node.values:
            value = self.value(operand, scope)
            if is_true(value) is stops:
                break
        return value

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.value(node.left, scope)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, scope)
            is_identity = isinstance(op, ast.Is | ast.IsNot)
            tensors = [v for v in (left, right) if isinstance(v, Tensor)]
            if tensors and not is_identity:
                if len(node.ops) > 1:
                    raise Unfollowed("a comparison of tensors in a chain")
                return self.call(Library("tensor.eq"), (left, right), {})
            if Unknown in (type(left), type(right)):
                raise Unfollowed("a comparison with what is not known")
            if not _COMPARISONS[type(op)](left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        chosen = node.body if is_true(self.value(node.test, scope)) else node.orelse
        return self.value(chosen, scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Function:
        return Function(node, scope, self.defaults(node, scope))

    def defaults(self, node: ast.FunctionDef | ast.Lambda, scope: Scope) -> dict[str, Any]:
        """Values of the defaults of a function's parameters."""
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        behind = positional[len(positional) - len(arguments.defaults) :]
        pairs = [*zip(behind, arguments.defaults, strict=True)]
        optional = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        pairs += [(argument, default) for argument, default in optional if default is not None]
        return {argument.arg: self.value(default, scope) for argument, default in pairs}

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        words = []
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            value = self.value(inner, scope)
            if not isinstance(value, int | str) or getattr(part, "format_spec", None):
                return UNKNOWN
            words.append(str(value))
        return "".join(words)[:_LONGEST_TEXT]

    def _listcomp(self, node: ast.ListComp, scope: Scope) -> list[Any]:
        return self._gathered(node, node.elt, scope)

    def _generatorexp(self, node: ast.GeneratorExp, scope: Scope) -> list[Any]:
        return self._gathered(node, node.elt, scope)

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> dict[Any, Any]:
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        return dict(self._gathered(node, pair, scope))

    def _gathered(self, node: Any, element: ast.expr, scope: Scope) -> list[Any]:
        inner = Scope({}, scope)
        found: list[Any] = []
        for _ in self._rounds(node.generators, inner):
            found.append(self.value(element, inner))
            few(found)
        return found

    def _rounds(self, generators: list[ast.comprehension], scope: Scope) -> Iterator[None]:
        first, *rest = generators
        for item in items_of(self.value(first.iter, scope)):
            self.step()
            self.assign(first.target, item, scope)
            if all(is_true(self.value(condition, scope)) for condition in first.ifs):
                if rest:
                    yield from self._rounds(rest, scope)
                else:
                    yield


class Super:
    """What `super()` gives: an instance, and the class after which attributes are looked up."""

    def __init__(self, first: Any, owner: Any) -> None:
        """`first` is the instance."""
        self.first, self.owner = first, owner


def _joined(op: ast.operator, a: Any, b: Any) -> Any:
    if isinstance(op, ast.Add) and type(a) is type(b):
        if len(a) + len(b) > MOST_ITEMS:
            raise Unfollowed("a list that is too long")
        return a + b
    items, count = (a, b) if isinstance(a, tuple | list) else (b, a)
    if not isinstance(op, ast.Mult) or len(items) * max(0, whole(count)) > MOST_ITEMS:
        raise Unfollowed("an operation on lists")
    return items * count


def _text(op: ast.operator, a: Any, b: Any) -> Any:
    if isinstance(op, ast.Add) and isinstance(a, str) and isinstance(b, str):
        return (a + b)[:_LONGEST_TEXT]
    return UNKNOWN
