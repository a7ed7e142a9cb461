"""How whoever measures treats those who are more urgent."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from gpu_runner.supervisor.runner.faults import FaultError, InDoubt

logger = logging.getLogger(__name__)

_MOST_TIMES = 1  # chosen: under a tool, starting again takes ten seconds

T = TypeVar("T")
P = ParamSpec("P")
M = TypeVar("M", bound="Mannered")


class Interrupted(Exception):
    """Somebody else wants the device: a process was ended, and nothing came of it."""


class Manners(Protocol):
    """Knows who else waits for the device."""

    def is_wanted(self, *, by_equals: bool = False, unused: bool = False) -> bool:
        """Whether somebody more urgent waits for it.

        by_equals: or somebody as urgent whose turn it is. unused: or anybody as urgent.
        """
        ...

    def step_aside(self, until: Callable[[], None] = lambda: None) -> None:
        """Let those have it who wait and are as urgent or more; come back when they are done.

        until: returns once the device is needed again.
        """
        ...


class Undisturbed:
    """Nobody else waits."""

    def is_wanted(self, *, by_equals: bool = False, unused: bool = False) -> bool:
        """See `Manners`."""
        return False

    def step_aside(self, until: Callable[[], None] = lambda: None) -> None:
        """See `Manners`."""


class Obliging:
    """Lets those interrupt who are as urgent, too, but not for ever: what is ended begins anew."""

    def __init__(
        self, manners: Manners, is_roomy: Callable[[], bool], times: int = _MOST_TIMES
    ) -> None:
        """is_roomy: see `Memory`. times: how often, for all processes together."""
        self._manners, self._is_roomy, self._left = manners, is_roomy, times

    def is_wanted(self) -> bool:
        """Whether the process is to be ended for somebody who waits."""
        wanted = self._manners.is_wanted()
        if not wanted and self._left > 0:
            wanted = self._manners.is_wanted(by_equals=True) and self._is_roomy()
        self._left -= wanted
        return wanted


class Mannered(Protocol):
    """What has manners.

    doubt: why a process of it was measured again; empty if none was. It happens once at most.
    """

    manners: Manners
    doubt: str


def patient(method: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """The method, done again from its start whenever somebody interrupts it.

    Also when it is in doubt who has ended its process, once for all methods of an object: if that
    happens again, it is the submission's fault. A kernel that ends itself where it dislikes its
    times gains nothing worth that: all that its process has measured is forgotten, the next one has
    new seeds, layouts and addresses and cannot know that it is the second, and there is no third.
    To submit again draws more luck.
    """

    @functools.wraps(method)
    def again(self: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        while True:
            try:
                return method(self, *args, **kwargs)
            except Interrupted:
                self.manners.step_aside()
            except InDoubt as error:
                if self.doubt:
                    reason = f"{error.fault.reason}, for the second time"
                    blamed = FaultError(replace(error.fault, reason=reason))
                    blamed.output = error.output
                    raise blamed from None
                self.doubt = error.fault.reason
                logger.warning("measured again: %s", self.doubt)

    return again
