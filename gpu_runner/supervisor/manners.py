"""How whoever measures treats those who are more urgent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


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


def patiently(manners: Manners, measure: Callable[[], T]) -> T:
    """What `measure` gives; again from its start whenever somebody more urgent came."""
    while True:
        try:
            return measure()
        except Interrupted:
            manners.step_aside()
