"""How whoever measures treats those who are more urgent."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
M = TypeVar("M", bound="Mannered")


class Interrupted(Exception):
    """Somebody more urgent wants the device: a process was ended, and nothing came of it."""


class Manners(Protocol):
    """Knows who else waits for the device."""

    def is_wanted(self) -> bool:
        """Whether somebody more urgent waits for it."""
        ...

    def step_aside(self) -> None:
        """Let them have it, and come back when they are done."""
        ...


class Undisturbed:
    """Nobody else waits."""

    def is_wanted(self) -> bool:
        """See `Manners`."""
        return False

    def step_aside(self) -> None:
        """See `Manners`."""


class Mannered(Protocol):
    """What has manners."""

    manners: Manners


def patient(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """The method, done again from its start whenever somebody more urgent interrupts it."""

    @functools.wraps(method)
    def again(self: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        while True:
            try:
                return method(self, *args, **kwargs)
            except Interrupted:
                self.manners.step_aside()

    return again
