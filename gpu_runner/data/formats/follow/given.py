"""The arguments of a call of a library, by position or by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu_runner.data.formats.follow.values import (
    Shape,
    Tensor,
    Unfollowed,
    axis,
    few,
    tensor,
    whole,
    wholes,
)

_NEEDED: Any = object()


@dataclass
class Given:
    """Arguments as they were handed over; a rule reads them by position and name."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def get(self, at: int, name: str, default: Any = _NEEDED) -> Any:
        """An argument, or its default; raises `Unfollowed` if there is neither."""
        if at < len(self.args):
            return self.args[at]
        found = self.kwargs.get(name, default)
        if found is _NEEDED:
            raise Unfollowed(f"a call without {name}")
        return found

    def tensor(self, at: int = 0, name: str = "input") -> Tensor:
        """An argument that is a tensor."""
        return tensor(self.get(at, name))

    def whole(self, at: int, name: str, default: Any = _NEEDED) -> int:
        """An argument that is a whole number."""
        return whole(self.get(at, name, default))

    def axis(self, at: int, name: str, rank: int, default: Any = _NEEDED) -> int:
        """An argument that is a dimension of `rank`, counted from the front."""
        return axis(self.get(at, name, default), rank)

    def sizes(self, start: int, *names: str) -> Shape:
        """A shape: a sequence by one of these names or at `start`, or all arguments from there."""
        for name in names:
            if name in self.kwargs:
                value = self.kwargs[name]
                return (value,) if isinstance(value, int) else wholes(value)
        rest = self.args[start:]
        if len(rest) == 1 and isinstance(rest[0], tuple | list):
            return wholes(rest[0])
        return wholes(tuple(few(rest)))

    def has(self, at: int, name: str) -> bool:
        """Whether an argument was handed over."""
        return at < len(self.args) or name in self.kwargs

    def values(self) -> tuple[Any, ...]:
        """All arguments."""
        return (*self.args, *self.kwargs.values())


Rule = Callable[[Given], Any]
"""What a library does, as far as shapes go; raises `Unfollowed` where it cannot be told."""
