"""Exit statuses of `kbench`, and the error that ends a command with one of them."""

from __future__ import annotations

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


class Stop(Exception):
    """The command cannot do what was asked; `field` names what is wrong, and may be empty.

    later: whether the same request may go well later, because the site was busy or away.
    """

    def __init__(self, status: Exit, reason: str, field: str = "", *, later: bool = False) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.status, self.reason, self.field = status, reason, field
        self.later = later or status is Exit.UNREACHABLE


_GOOD = ("CORRECT", "COMPILED")
_OURS = "SYSTEM_ERROR"


def exit_of(verdict: str) -> Exit:
    """The status for a verdict; one that is the site's fault is no verdict of the kernel."""
    if verdict in _GOOD:
        return Exit.GOOD
    return Exit.UNREACHABLE if verdict == _OURS else Exit.OTHER_VERDICT
