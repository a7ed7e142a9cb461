"""What stands for a program's values while it is followed: shapes for tensors, names for code."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]

LARGEST = 2**53  # of a number: more is a mistake, or meant to keep us busy
MOST_ITEMS = 1024  # of a tuple, a list or a range
MOST_DIMENSIONS = 64  # as far as PyTorch's operations reach


class Unfollowed(Exception):
    """What a program does cannot be told from its text, or is an error."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor's shape, and of whole numbers from 0 what they are all below, where that is known.

    kind: "float", "int" or "bool".
    """

    shape: Shape
    kind: str = "float"
    below: int | None = None

    def __post_init__(self) -> None:
        """Refuse shapes that no tensor has."""
        if len(self.shape) > MOST_DIMENSIONS or not all(0 <= d < LARGEST for d in self.shape):
            raise Unfollowed(f"a tensor of the shape {self.shape}")

    @property
    def count(self) -> int:
        """Number of its elements."""
        return math.prod(self.shape)

    def shaped(self, shape: Sequence[int]) -> Tensor:
        """One of another shape with the same kind of elements."""
        return Tensor(tuple(shape), self.kind, self.below)


class Unknown:
    """A value of which nothing is known; it may be handed around, but not looked at."""


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Library:
    """Something of Python or a library by its full name, such as `torch.nn.Linear`."""

    path: str

    @property
    def name(self) -> str:
        """The last part of it."""
        return self.path.rpartition(".")[2]


@dataclass(eq=False)
class Scope:
    """The names of a function call, of a class's body or, without an outer one, of the module.

    owner: the class whose method it is of, and `first` its first argument, for `super()`.
    """

    names: dict[str, Any]
    outer: Scope | None = None
    owner: Class | None = None
    first: Any = None

    def find(self, name: str) -> Any:
        """Value of a name here or outside; raises `KeyError`."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        raise KeyError(name)


@dataclass(eq=False)
class Function:
    """A function of the program, with the values of its parameters' defaults."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope
    defaults: Mapping[str, Any]
    owner: Class | None = None
    decorators: tuple[str, ...] = ()


@dataclass(eq=False)
class Method:
    """A function with its first argument, or an attribute of a value that can be called."""

    function: Any
    first: Any


@dataclass(eq=False)
class Class:
    """A class of the program. fields: those of a dataclass, in order."""

    name: str
    bases: tuple[Any, ...]
    names: dict[str, Any]
    fields: tuple[str, ...] | None = None

    def lineage(self) -> Iterator[Any]:
        """Itself and what it inherits from, nearest first; libraries' classes by their names."""
        yield self
        for base in self.bases:
            if isinstance(base, Class):
                yield from base.lineage()
            else:
                yield base

    def find(self, name: str, *, after: Class | None = None) -> Any:
        """An attribute, of those that come `after` a class if there is one; raises `KeyError`."""
        lineage = list(self.lineage())
        for owner in lineage[lineage.index(after) + 1 if after is not None else 0 :]:
            if isinstance(owner, Class) and name in owner.names:
                return owner.names[name]
        raise KeyError(name)

    @property
    def is_module(self) -> bool:
        """Whether it inherits from `torch.nn.Module` at last."""
        return any(isinstance(e, Library) and e.path == "torch.nn.Module" for e in self.lineage())


@dataclass(eq=False)
class Instance:
    """An object of one of the program's classes, or one with attributes alone (no `of`)."""

    of: Class | None
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Layer:
    """A layer of `torch.nn`. settings: its arguments by their names; parts: of a container."""

    kind: str
    settings: dict[str, Any]
    parts: dict[str, Any] = field(default_factory=dict)


def whole(value: Any) -> int:
    """A whole number; raises `Unfollowed` for anything else."""
    if not isinstance(value, int):
        raise Unfollowed("a size that is not known")
    if abs(value) >= LARGEST:
        raise Unfollowed("a number that is too large")
    return int(value)


def wholes(value: Any) -> Shape:
    """A sequence of whole numbers."""
    if not isinstance(value, tuple | list):
        raise Unfollowed("a shape that is not known")
    return tuple(whole(item) for item in value)


def tensor(value: Any) -> Tensor:
    """A tensor; raises `Unfollowed` for anything else."""
    if not isinstance(value, Tensor):
        raise Unfollowed("a tensor that is not known")
    return value


def known(value: Any) -> Any:
    """The value unless nothing is known of it."""
    if isinstance(value, Unknown):
        raise Unfollowed("a value that is not known")
    return value


def few(items: list[Any] | tuple[Any, ...]) -> list[Any] | tuple[Any, ...]:
    """The items, if they are not too many to go through."""
    if len(items) > MOST_ITEMS:
        raise Unfollowed(f"more than {MOST_ITEMS} items")
    return items


def axis(value: Any, rank: int) -> int:
    """A dimension counted from the front; raises `Unfollowed` where there is none."""
    number = whole(value)
    if not -max(rank, 1) <= number < max(rank, 1):
        raise Unfollowed(f"dimension {number} of {rank}")
    return number % max(rank, 1)


def broadcast(*shapes: Shape) -> Shape:
    """The shape that tensors of these shapes have together."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    found = []
    for sizes in zip(*padded, strict=True):
        different = {size for size in sizes if size != 1} or {1}
        if len(different) > 1:
            raise Unfollowed(f"shapes that do not fit: {shapes}")
        found.append(different.pop())
    return tuple(found)


def same(wanted: int, found: int) -> None:
    """Raise `Unfollowed` unless two sizes that must be the same are."""
    if wanted != found:
        raise Unfollowed(f"a size of {found} where {wanted} is needed")
