"""Whose turn it is on a device: one at a time, the more urgent first, then whoever came first."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path

from gpu_runner.data.queue import Urgency
from gpu_runner.supervisor.device.device import DeviceError
from gpu_runner.supervisor.host.config import SupervisorConfig

_PAUSE_S = 0.005  # chosen: below what a measurement takes by far
_OVERDUE_S = 60.0  # chosen: most equals are done by then
_numbers = itertools.count(1)


def _folder(config: SupervisorConfig) -> Path:
    return config.cache_folder / "locks"


def device_lock(config: SupervisorConfig) -> int:
    """A new descriptor of the file whose lock (flock) is the device; the caller closes it."""
    folder = _folder(config)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{config.kind}-{config.index}.lock"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


@contextmanager
def lent_lock(config: SupervisorConfig, *, wanted: bool = True) -> Iterator[list[int]]:
    """Descriptors for a process that is to hold the lock for a while: one, or none."""
    descriptors = [device_lock(config)] if wanted else []
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


class _Place(StrEnum):
    """Where somebody stands among equals; each place is before the next."""

    OVERDUE = "0"
    """Stepped aside, and has waited for a long time."""
    NEW = "1"
    """Hasn't had the device yet."""
    ASIDE = "2"
    """Had it, and stepped aside."""


class Turn:
    """A place in the line for a device, held by locks on files: a process that dies leaves it.

    Whoever waits has a file of their own, and a lock on it that others can see. Names sort as the
    line does: by rank, by place, then by when they first came, on a clock of the whole host.
    """

    def __init__(self, config: SupervisorConfig, urgency: Urgency) -> None:
        self._config, self._rank = config, list(Urgency).index(urgency)
        self._came, self._number = f"{time.monotonic_ns():020}", next(_numbers)
        self._place = _Place.NEW
        folder = _folder(config)
        self._line = folder / f"{config.kind}-{config.index}.line"
        self._held: int | None = None

    def is_wanted(self, *, by_equals: bool = False, unused: bool = False) -> bool:
        """Whether somebody more urgent waits for the device; by_equals: or as urgent.

        Equals who came later have one turn. Then they wait until this one is done, or until they
        are overdue: if all took turns to the end, nobody would be done early. unused: the device
        isn't needed now, so that every equal may have it.
        """
        if self._is_behind(f"{self._rank + unused}-"):
            return True
        return by_equals and self._is_seen(self._lets_pass)

    def take(self) -> None:
        """Wait for the device, and for everybody before this turn.

        The kernel frees it if this process dies. Raises `DeviceError` after too long.
        """
        since = time.monotonic()
        self._line.mkdir(parents=True, exist_ok=True)
        with self._waiting():
            while not self._has_it():
                waited_s = time.monotonic() - since
                if waited_s > self._config.device_timeout_s:
                    limit_s, device = self._config.device_timeout_s, self._config.device
                    raise DeviceError(f"{device} did not become free within {limit_s:g} s")
                if self._place is _Place.ASIDE and waited_s > _OVERDUE_S:
                    self._move(_Place.OVERDUE)
                time.sleep(_PAUSE_S)

    def step_aside(self, until: Callable[[], None] = lambda: None) -> None:
        """Leave the device to those who are more urgent or as urgent, and wait for it again.

        until: returns once it is needed again.
        """
        self.give()
        until()
        self._place, self._number = _Place.ASIDE, next(_numbers)  # no file has a name again
        self.take()

    def give(self) -> None:
        """Leave the device to others."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    @property
    def _name(self) -> str:
        return f"{self._rank}-{self._place}-{self._came}-{os.getpid()}-{self._number}"

    def _lets_pass(self, name: str) -> bool:
        rank, place, came, *_ = name.split("-")
        return rank == str(self._rank) and (place != _Place.ASIDE or came < self._came)

    def _move(self, place: _Place) -> None:
        before, self._place = self._name, place
        (self._line / before).rename(self._line / self._name)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Stand in the line meanwhile: the file appears with its lock on it."""
        path = self._line / self._name
        new = path.with_name(f".{path.name}")
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            new.rename(path)
            yield
        finally:
            (self._line / self._name).unlink(missing_ok=True)  # it may have moved
            os.close(descriptor)

    def _has_it(self) -> bool:
        if self._is_behind(self._name) or not self._locked():
            return False
        if self._is_behind(self._name):  # somebody who came in between goes first
            self.give()
            return False
        return True

    def _is_behind(self, name: str) -> bool:
        """Whether somebody alive stands in the line before a file of this name."""
        return self._is_seen(lambda other: other < name)

    def _is_seen(self, counts: Callable[[str], bool]) -> bool:
        """Whether somebody alive whose file has such a name stands in the line."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._line) as entries:
            names = (entry for entry in entries if not entry.name.startswith("."))
            return any(_is_alive(entry.path) for entry in names if counts(entry.name))
        return False

    def _locked(self) -> bool:
        descriptor = device_lock(self._config)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._held = descriptor
        return True


def _is_alive(path: str) -> bool:
    """Whether whoever stands there does; the file of one that has died is removed."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    Path(path).unlink(missing_ok=True)
    return False


class Courteous:
    """The manners of an evaluation: those who are more urgent get the device from it."""

    def __init__(
        self,
        turn: Turn,
        aside: Callable[[], AbstractContextManager[None]],
        settle: Callable[[], None],
    ) -> None:
        """`aside` surrounds the wait; `settle` comes after it: the device may be broken by then."""
        self._turn, self._aside, self._settle = turn, aside, settle

    def is_wanted(self, *, by_equals: bool = False, unused: bool = False) -> bool:
        return self._turn.is_wanted(by_equals=by_equals, unused=unused)

    def step_aside(self, until: Callable[[], None] = lambda: None) -> None:
        with self._aside():
            self._turn.step_aside(until)
        self._settle()


@contextmanager
def exclusive(config: SupervisorConfig, urgency: Urgency = Urgency.PEOPLE) -> Iterator[Turn]:
    """Hold the device; see `Turn.take`."""
    turn = Turn(config, urgency)
    turn.take()
    try:
        yield turn
    finally:
        turn.give()
