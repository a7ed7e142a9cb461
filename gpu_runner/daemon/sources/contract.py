"""What a source of jobs does, whichever way they travel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpu_runner.data.event import Event
from gpu_runner.data.order import Ask, Order, Word


class Away(Exception):
    """The other side cannot be reached, or cannot answer now. Asking again later may help."""


class Refused(Exception):
    """The other side will never take this; the message says why."""


class Source(Protocol):
    """One process's way to the site."""

    is_endless: bool
    """Whether more jobs may come when there is none; a folder has so many."""
    unread: int
    """Jobs that were left out, as they cannot be read."""
    is_brief: bool
    """Whether `take` returns soon. A stop then waits for it, because an interrupted `take` may lose
    the job that it was about to return."""

    def take(self, ask: Ask) -> Order | None:
        """A job, or None after some seconds without one. Raises `Away`.

        It may answer an earlier ask whose answer was lost on its way. So a job that the site has
        handed over is never forgotten.
        """

    def send(self, event: Event) -> None:
        """Report a fact; it is safe with the site afterwards. Raises `Away` or `Refused`."""

    def done(self) -> None:
        """The job that was taken last is over, and all that it had to report is sent."""

    def word(self, runner: str) -> Word:
        """What the site wants of the runner now. Raises `Away`."""


Connect = Callable[[], Source]
"""Opens a source for the process that calls it."""
