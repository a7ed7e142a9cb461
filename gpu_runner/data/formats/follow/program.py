"""A program that is followed: whom it calls, and the attributes of what it has made."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpu_runner.data.formats.follow.arithmetic import ARITHMETIC
from gpu_runner.data.formats.follow.expressions import Super
from gpu_runner.data.formats.follow.given import Given, Rule
from gpu_runner.data.formats.follow.layers import apply_layer, make_layer, weight_of
from gpu_runner.data.formats.follow.making import MAKERS
from gpu_runner.data.formats.follow.moves import MOVES
from gpu_runner.data.formats.follow.python import CONSTANTS, PYTHON, items_of, method_of
from gpu_runner.data.formats.follow.statements import Returned, Statements, arguments_of
from gpu_runner.data.formats.follow.values import (
    UNKNOWN,
    Class,
    Function,
    Instance,
    Layer,
    Library,
    Method,
    Scope,
    Tensor,
    Unfollowed,
    Unknown,
    few,
)
from gpu_runner.data.formats.follow.windows import WINDOWS

_OPERATIONS: dict[str, Rule] = {**ARITHMETIC, **MOVES, **WINDOWS}
_DEEPEST = 60  # calls within calls
_TORCH = ("torch.", "torch.nn.functional.", "torch.linalg.", "torch.special.", "tensor.")
_QUIET = frozenset({"eval", "train", "apply", "to", "cuda", "cpu", "float", "requires_grad_"})
"""Methods of a module that return it as it is."""
_OF_MODULES = _QUIET | {
    "register_buffer",
    "register_parameter",
    "add_module",
    "modules",
    "__init__",
}
_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "cached_property", "no_grad"})
_CHANGEABLE = (Tensor, Layer, Instance, Class, list, dict)
_WITHOUT_SHAPE = ("torch.nn.init.", "torch.manual_seed", "torch.set_", "numpy.random.seed")


class Program(Statements):
    """A module, followed from its first statement to its last; its functions when called."""

    def __init__(self, tree: ast.Module, changes: Mapping[str, Any]) -> None:
        """Follow the module, whose globals are others where there are `changes`."""
        self.module = Scope({"__name__": "problem"})
        self._depth = 0
        self.run_module(tree, self.module, changes)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """See `Expressions.call`."""
        self.step()
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise Unfollowed("calls that are nested too deeply")
            return self._called(function, args, kwargs)
        except RecursionError:
            raise Unfollowed("a program that is nested too deeply") from None
        finally:
            self._depth -= 1

    def _called(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        ways: dict[type, Callable[..., Any]] = {
            Function: self._entered,
            Class: self._made,
            Method: self._of_method,
            Instance: self._of_object,
            Layer: self._layered,
            Library: self._library,
        }
        if type(function) not in ways:
            raise Unfollowed("a call of something that is not known")
        return ways[type(function)](function, args, kwargs)

    def _of_method(self, method: Method, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if isinstance(method.function, Library):
            return self._own(method.first, method.function.path, Given(args, kwargs))
        return self._called(method.function, (method.first, *args), kwargs)

    def _of_object(self, value: Instance, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        is_plain = value.of is not None and "__call__" in value.of.names
        return self.call(self.attribute(value, "__call__" if is_plain else "forward"), args, kwargs)

    def _layered(self, layer: Layer, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if layer.kind != "Sequential":
            return apply_layer(layer, Given(args, kwargs))
        (value,) = args
        for part in items_of(layer):
            value = self.call(part, (value,), {})
        return value

    def _entered(self, function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What one of the program's own functions returns."""
        if set(function.decorators) - _DECORATORS:
            raise Unfollowed("a decorator that is not known")
        names = arguments_of(function, args, kwargs)
        scope = Scope(names, function.scope, function.owner, args[0] if args else None)
        if isinstance(function.node, ast.Lambda):
            return self.value(function.node.body, scope)
        try:
            self.run(function.node.body, scope)
        except Returned as returned:
            return returned.value
        return None

    def _made(self, of: Class, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Instance:
        """An object of one of the program's own classes."""
        made = Instance(of)
        foreign = [base.path for base in of.lineage() if isinstance(base, Library)]
        if set(foreign) - {"torch.nn.Module", "builtins.object"}:
            raise Unfollowed(f"a class that inherits from {foreign[0]}")
        if of.fields is not None:
            values = dict(zip(of.fields, args, strict=False)) | dict(kwargs)
            made.attributes |= {n: of.names[n] for n in of.fields if n in of.names} | values
            return made
        try:
            begin = of.find("__init__")
        except KeyError:
            if args or kwargs:
                raise Unfollowed(f"{of.name} with arguments") from None
            return made
        self.call(begin, (made, *args), kwargs)
        return made

    def _library(self, of: Library, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What a function of Python or torch returns; of others nothing is known."""
        given = Given(args, kwargs)
        rule = PYTHON.get(of.path) or MAKERS.get(of.path)
        if rule is not None:
            return rule(given)
        if of.path in ("builtins.getattr", "builtins.hasattr"):
            return self._looked_up(of.name, given)
        if of.path.startswith("torch.nn.") and of.name[:1].isupper():
            return make_layer(of.name, given)
        if of.name in _OPERATIONS and any(of.path == start + of.name for start in _TORCH):
            return _OPERATIONS[of.name](_by_position(given))
        if of.path.startswith(_WITHOUT_SHAPE):
            return args[0] if args else None
        if any(isinstance(value, _CHANGEABLE) for value in given.values()):
            raise Unfollowed(f"a call of {of.path}()")
        return UNKNOWN

    def _looked_up(self, name: str, given: Given) -> Any:
        """`getattr` and `hasattr`."""
        value, attribute = given.args[0], given.args[1]
        if not isinstance(attribute, str) or not isinstance(value, Instance):
            raise Unfollowed("an attribute that is not known")
        try:
            found = self.attribute(value, attribute)
        except Unfollowed:
            if name == "getattr" and len(given.args) < 3:
                raise
            return given.args[2] if name == "getattr" else False
        return found if name == "getattr" else True

    def _own(self, value: Any, name: str, given: Given) -> Any:
        """A method that Python or torch has for a value."""
        if isinstance(value, Tensor):
            return self._of_tensor(value, name, given)
        if isinstance(value, Layer):
            return _done_by_layer(value, name, given)
        if isinstance(value, Instance):
            return _done_by_module(value, name, given)
        return method_of(value, name, given)

    def _of_tensor(self, value: Tensor, name: str, given: Given) -> Any:
        match name:
            case "size":
                dims = given.get(0, "dim", None)
                return value.shape if dims is None else value.shape[dims]
            case "dim" | "ndimension":
                return len(value.shape)
            case "numel" | "nelement":
                return value.count
            case "item":
                return UNKNOWN
        if name.startswith("new_"):
            return self._library(Library(f"torch.{name[4:]}"), given.args, given.kwargs)
        return self._library(Library(f"tensor.{name}"), (value, *given.args), given.kwargs)

    def attribute(self, value: Any, name: str) -> Any:
        """See `Expressions.attribute`."""
        ways: dict[type, Callable[[Any, str], Any]] = {
            Library: lambda v, n: CONSTANTS.get(f"{v.path}.{n}", Library(f"{v.path}.{n}")),
            Unknown: lambda v, n: UNKNOWN,
            Tensor: _of_shape,
            Layer: _of_layer,
            Instance: self._of_instance,
            Class: self._of_class,
            Super: self._of_super,
        }
        if isinstance(value, tuple) and name in ("values", "indices"):  # of max() and its like
            return value[name == "indices"]
        find = ways.get(type(value))
        return find(value, name) if find is not None else Method(Library(name), value)

    def _of_super(self, value: Super, name: str) -> Any:
        if not isinstance(value.first, Instance) or value.first.of is None:
            raise Unfollowed("super() of something that is not known")
        try:
            return self._bound(value.first, value.first.of.find(name, after=value.owner))
        except KeyError:
            return Method(Library(name), value.first)

    def _of_instance(self, value: Instance, name: str) -> Any:
        if name in value.attributes:
            return value.attributes[name]
        if value.of is not None:
            try:
                return self._bound(value, value.of.find(name))
            except KeyError:
                if value.of.is_module and name == "training":
                    return True
                if value.of.is_module and name in _OF_MODULES:
                    return Method(Library(name), value)
        raise Unfollowed(f"an attribute {name}")

    def _of_class(self, value: Class, name: str) -> Any:
        found = value.find(name)
        if isinstance(found, Function) and "classmethod" in found.decorators:
            return Method(found, value)
        return found

    def _bound(self, value: Instance, found: Any) -> Any:
        """An attribute of a class, as its object has it."""
        if not isinstance(found, Function) or "staticmethod" in found.decorators:
            return found
        if "classmethod" in found.decorators:
            return Method(found, value.of)
        if {"property", "cached_property"} & set(found.decorators):
            return self.call(found, (value,), {})
        return Method(found, value)

    def missing(self, name: str) -> Any:
        """See `Expressions.missing`."""
        if f"builtins.{name}" in PYTHON or name in ("getattr", "hasattr", "object"):
            return Library(f"builtins.{name}")
        return UNKNOWN


def _by_position(given: Given) -> Given:
    """With the tensor that an operation is on as its first argument."""
    if given.args or "input" not in given.kwargs:
        return given
    rest = {name: value for name, value in given.kwargs.items() if name != "input"}
    return Given((given.kwargs["input"],), rest)


def _of_shape(value: Tensor, name: str) -> Any:
    """An attribute of a tensor."""
    match name:
        case "shape":
            return value.shape
        case "ndim":
            return len(value.shape)
        case "T" | "mT" | "data":
            return _OPERATIONS[name](Given((value,)))
        case "device":
            return Library("device")  # all are on one
        case "dtype" | "grad" | "requires_grad":
            return UNKNOWN
    return Method(Library(name), value)


def _of_layer(value: Layer, name: str) -> Any:
    """An attribute of a layer."""
    if name in value.parts:
        return value.parts[name]
    if name in value.settings:
        return value.settings[name]
    return weight_of(value, name) if name in ("weight", "bias") else Method(Library(name), value)


def _modules(value: Any) -> Iterator[Any]:
    """A module and those in it."""
    if isinstance(value, Layer | Instance):
        yield value
        inside = value.parts if isinstance(value, Layer) else value.attributes
        for each in inside.values():
            yield from _modules(each)


def _done_by_layer(value: Layer, name: str, given: Given) -> Any:
    """A method of a layer; those of a container change its parts."""
    parts = list(value.parts.values())
    match name:
        case "append":
            parts.append(given.args[0])
        case "extend":
            parts += items_of(given.args[0])
        case "insert":
            parts.insert(given.whole(0, "index"), given.args[1])
        case "add_module":
            value.parts[str(given.args[0])] = given.args[1]
            return None
        case "items" | "keys" | "values" | "update" | "get":
            return method_of(value.parts, name, given)
        case "forward":
            return apply_layer(value, given)
        case _ if name in _QUIET:
            return value
        case _:
            raise Unfollowed(f"a call of {name}()")
    few(parts)
    value.parts = {str(at): part for at, part in enumerate(parts)}
    return value


def _done_by_module(value: Instance, name: str, given: Given) -> Any:
    """A method that a module of the program has from torch."""
    match name:
        case "__init__":
            return None
        case "register_buffer" | "register_parameter":
            value.attributes[str(given.args[0])] = given.get(1, "tensor", given.kwargs.get("param"))
            return None
        case "add_module":
            value.attributes[str(given.args[0])] = given.args[1]
            return None
        case "modules":
            return list(_modules(value))
        case _ if name in _QUIET:
            return value
    raise Unfollowed(f"a call of {name}()")
