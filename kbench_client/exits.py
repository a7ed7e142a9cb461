"""Exit statuses of `kbench`, and the error that ends a command with one of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """What a script learns from the exit status; docs/client.md explains each."""

    GOOD = 0
    OTHER_VERDICT = 1
    MISUSE = 2
    UNREACHABLE = 3
    NO_TOKEN = 4
    TIME_OVER = 5
    TOO_SLOW = 6
    LATER = 7


class Stop(Exception):
    """The command cannot do what was asked; `field` names what is wrong, and may be empty.

    also: fields and reasons of what else is wrong.
    retry_s: in how many seconds the site may take the same request; 0 if it hasn't said.
    """

    def __init__(
        self,
        status: Exit,
        reason: str,
        field: str = "",
        *,
        also: Sequence[tuple[str, str]] = (),
        retry_s: int = 0,
    ) -> None:
        every = [(field, reason), *also]
        super().__init__("\n".join(": ".join(filter(None, each)) for each in every))
        self.status, self.reason, self.field, self.also = status, reason, field, also
        self.retry_s = retry_s


_GOOD = ("CORRECT", "COMPILED")
_OURS = "SYSTEM_ERROR"


def exit_of(verdict: str) -> Exit:
    """The status for a verdict; one that is the site's fault is no verdict of the kernel."""
    if verdict in _GOOD:
        return Exit.GOOD
    return Exit.UNREACHABLE if verdict == _OURS else Exit.OTHER_VERDICT
