"""What an attack is: what it tries, through which door, and how one says that it was stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.adversarial.compromised.doors import Door
    from tests.adversarial.compromised.world import World

REDIS, HTTPS, HOST = "Redis", "HTTPS", "the host"


class NotStopped(AssertionError):
    """The attack got what it wanted; the text says what that was."""


@dataclass(frozen=True)
class Attack:
    """One way to misuse a runner that was taken over.

    run: tries it through a door, and returns the answer that stopped it; raises `NotStopped`.
    """

    name: str
    tries: str
    stopped_by: str
    doors: tuple[str, ...]
    run: Callable[[World, Door], str]


CATALOGUE: list[Attack] = []


def attack(*doors: str, by: str) -> Callable[[Callable[[Any, Any], str]], Callable[..., str]]:
    """Put a function into the catalogue; its name and docstring say what it tries."""

    def enter(function: Callable[[Any, Any], str]) -> Callable[..., str]:
        name = function.__name__.replace("_", " ")
        tries = (function.__doc__ or "").strip()
        CATALOGUE.append(Attack(name, tries, by, doors, function))
        return function

    return enter


def require(condition: Any, what: str) -> None:
    """Raise `NotStopped` with what got through, unless the condition holds."""
    if not condition:
        raise NotStopped(what)


def denied(act: Callable[..., Any], *arguments: Any) -> str:
    """The error with which an act was refused."""
    try:
        answer = act(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise NotStopped(f"answered {str(answer)[:200]!r}")
