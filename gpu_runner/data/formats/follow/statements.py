"""Statements of a program, followed in order."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_runner.data.formats.follow.expressions import FAILURES, Expressions
from gpu_runner.data.formats.follow.moves import indexed
from gpu_runner.data.formats.follow.python import is_true, items_of
from gpu_runner.data.formats.follow.values import (
    UNKNOWN,
    Class,
    Function,
    Instance,
    Layer,
    Library,
    Scope,
    Tensor,
    Unfollowed,
    broadcast,
    known,
)

_MOST_ROWS = 16  # of a tensor that is unpacked


class Returned(Exception):
    """Ends a function."""

    def __init__(self, value: Any) -> None:
        """`value` is what it returns."""
        super().__init__()
        self.value = value


class Broken(Exception):
    """Ends a loop."""


class Continued(Exception):
    """Ends a round of a loop."""


class Statements(Expressions):
    """Follows statements."""

    def run(self, body: list[ast.stmt], scope: Scope) -> None:
        """Follow statements; raises `Unfollowed` at the first that cannot be told."""
        for node in body:
            self.step()
            follow = getattr(self, f"_do_{type(node).__name__.lower()}", None)
            if follow is None:
                raise Unfollowed(f"a {type(node).__name__}")
            try:
                follow(node, scope)
            except FAILURES as error:
                raise Unfollowed(f"{type(error).__name__} in line {node.lineno}") from None

    def run_module(self, tree: ast.Module, scope: Scope, changes: Mapping[str, Any]) -> None:
        """Follow a module. What cannot be told is unknown, and matters where it is used.

        `changes` replace what is assigned to these names.
        """
        for node in tree.body:
            if isinstance(node, ast.Raise):
                continue
            bound = set(_bound(node))
            try:
                self.run([node], scope)
            except (Unfollowed, Returned, Broken, Continued, RecursionError):
                scope.names |= dict.fromkeys(bound, UNKNOWN)
            scope.names |= {name: changes[name] for name in changes.keys() & bound}

    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """See `Expressions.assign`."""
        match target:
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._assign_each(targets, _unpacked(value), scope)
            case ast.Attribute(value=owner, attr=name):
                self._set_attribute(self.value(owner, scope), name, value)
            case ast.Subscript(value=owner, slice=key):
                self._set_item(self.value(owner, scope), self.value(key, scope), value)

    def _assign_each(self, targets: list[ast.expr], values: list[Any], scope: Scope) -> None:
        starred = [at for at, each in enumerate(targets) if isinstance(each, ast.Starred)]
        if starred:
            targets, values = _packed(targets, values, starred[0])
        if len(values) != len(targets):
            raise Unfollowed("values that do not fit their names")
        for each, part in zip(targets, values, strict=True):
            self.assign(each, part, scope)

    def _set_attribute(self, owner: Any, name: str, value: Any) -> None:
        if isinstance(owner, Instance):
            owner.attributes[name] = value
        elif isinstance(owner, Class):
            owner.names[name] = value
        elif isinstance(owner, Layer) and isinstance(value, Tensor):
            owner.settings[name] = value  # a weight that is tied to another one
        else:
            raise Unfollowed("an attribute of something that is not known")

    def _set_item(self, owner: Any, key: Any, value: Any) -> None:
        if isinstance(owner, Tensor):
            place = indexed(owner, key).shape
            given = value.shape if isinstance(value, Tensor) else ()
            if not isinstance(value, Tensor | int | float) or broadcast(place, given) != place:
                raise Unfollowed("a part that does not fit")
        elif isinstance(owner, list | dict):
            owner[known(key)] = value
        elif isinstance(owner, Layer):
            owner.parts[str(key)] = value
        else:
            raise Unfollowed("a part of something that is not known")

    def _do_assign(self, node: ast.Assign, scope: Scope) -> None:
        value = self.value(node.value, scope)
        for target in node.targets:
            self.assign(target, value, scope)

    def _do_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, scope), scope)

    def _do_augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        before = self.value(node.target, scope)
        after = self.combined(node.op, before, self.value(node.value, scope))
        if isinstance(before, Tensor) and isinstance(after, Tensor) and before.shape != after.shape:
            raise Unfollowed("a result that does not fit where it is to go")
        if isinstance(before, list):
            before[:] = after
        else:
            self.assign(node.target, after, scope)

    def _do_expr(self, node: ast.Expr, scope: Scope) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value, scope)

    def _do_pass(self, node: ast.Pass, scope: Scope) -> None:
        pass

    def _do_return(self, node: ast.Return, scope: Scope) -> None:
        raise Returned(self.value(node.value, scope) if node.value is not None else None)

    def _do_break(self, node: ast.Break, scope: Scope) -> None:
        raise Broken

    def _do_continue(self, node: ast.Continue, scope: Scope) -> None:
        raise Continued

    def _do_if(self, node: ast.If, scope: Scope) -> None:
        chosen = node.body if is_true(self.value(node.test, scope)) else node.orelse
        self.run(chosen, scope)

    def _do_assert(self, node: ast.Assert, scope: Scope) -> None:
        if not is_true(self.value(node.test, scope)):
            raise Unfollowed("an assertion that fails")

    def _do_for(self, node: ast.For, scope: Scope) -> None:
        def rounds() -> Iterator[None]:
            for item in items_of(self.value(node.iter, scope)):
                self.assign(node.target, item, scope)
                yield

        self._repeat(node, rounds(), scope)

    def _do_while(self, node: ast.While, scope: Scope) -> None:
        def rounds() -> Iterator[None]:
            while is_true(self.value(node.test, scope)):
                yield

        self._repeat(node, rounds(), scope)

    def _repeat(self, node: ast.For | ast.While, rounds: Iterator[None], scope: Scope) -> None:
        for _ in rounds:
            self.step()
            try:
                self.run(node.body, scope)
            except Continued:
                continue
            except Broken:
                return
        self.run(node.orelse, scope)

    def _do_with(self, node: ast.With, scope: Scope) -> None:
        for item in node.items:
            given = self.value(item.context_expr, scope)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, given, scope)
        self.run(node.body, scope)

    def _do_global(self, node: ast.Global, scope: Scope) -> None:
        raise Unfollowed("a global that a function changes")

    def _do_import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            if alias.asname:
                scope.names[alias.asname] = Library(alias.name)
            else:
                scope.names[alias.name.partition(".")[0]] = Library(alias.name.partition(".")[0])

    def _do_importfrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            scope.names[alias.asname or alias.name] = Library(f"{node.module}.{alias.name}")

    def _do_functiondef(self, node: ast.FunctionDef, scope: Scope) -> None:
        decorators = tuple(map(_decorator, node.decorator_list))
        function = Function(node, scope, self.defaults(node, scope), scope.owner, decorators)
        if isinstance(scope.first, Class):  # the body of a class, whose names methods do not see
            function.scope, function.owner = scope.outer or scope, scope.first
        scope.names[node.name] = function

    def _do_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        bases = tuple(self.value(base, scope) for base in node.bases)
        made = Class(node.name, bases, {})
        decorators = set(map(_decorator, node.decorator_list))
        if node.keywords or decorators - {"dataclass"}:
            raise Unfollowed("a class that is made in another way")
        if decorators or any(isinstance(b, Library) and b.name == "NamedTuple" for b in bases):
            made.fields = tuple(
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            )
            made.bases = tuple(b for b in bases if isinstance(b, Class))
        self.run(node.body, Scope(made.names, scope, first=made))
        scope.names[node.name] = made


def arguments_of(
    function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """What a function's parameters are in a call; raises `Unfollowed` where they do not fit."""
    wanted = function.node.args
    positional = [each.arg for each in (*wanted.posonlyargs, *wanted.args)]
    optional = [each.arg for each in wanted.kwonlyargs]
    names = dict(zip(positional, args, strict=False))
    rest, more = args[len(positional) :], dict(kwargs)
    for name in (*positional, *optional):
        if name in more:
            if name in names:
                raise Unfollowed(f"{name} twice")
            names[name] = more.pop(name)
        elif name not in names:
            if name not in function.defaults:
                raise Unfollowed(f"a call without {name}")
            names[name] = function.defaults[name]
    if (rest and wanted.vararg is None) or (more and wanted.kwarg is None):
        raise Unfollowed("more arguments than there are parameters")
    names |= {wanted.vararg.arg: rest} if wanted.vararg is not None else {}
    return names | ({wanted.kwarg.arg: more} if wanted.kwarg is not None else {})


def _unpacked(value: Any) -> list[Any]:
    """What several names get of a value."""
    if isinstance(value, Tensor) and value.shape and value.shape[0] <= _MOST_ROWS:
        return [value.shaped(value.shape[1:])] * value.shape[0]
    return items_of(value)


def _packed(targets: list[ast.expr], values: list[Any], at: int) -> tuple[Any, list[Any]]:
    """Targets and values without the star that one target has."""
    star = targets[at]
    assert isinstance(star, ast.Starred)
    behind = len(targets) - at - 1
    middle = values[at : len(values) - behind]
    packed = [*values[:at], middle, *values[len(values) - behind :]]
    return [*targets[:at], star.value, *targets[at + 1 :]], packed


def _decorator(node: ast.expr) -> str:
    """The last part of a decorator's name."""
    inner = node.func if isinstance(node, ast.Call) else node
    return inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")


def _bound(node: ast.stmt) -> Iterator[str]:
    """Names that a statement may bind; of an expression, those whose values it may change."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and (
            isinstance(node, ast.Expr) or not isinstance(each.ctx, ast.Load)
        ):
            yield each.id
        elif isinstance(each, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield each.name
