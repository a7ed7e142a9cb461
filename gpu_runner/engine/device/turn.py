"""Waits for a device's lock, and imports what a process needs, while nothing is measured."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import select
import time
from typing import Protocol

_PAUSE_S = 0.1  # chosen: a wait that nobody notices


class HasFileno(Protocol):
    """A file, a socket, or the like."""

    def fileno(self) -> int: ...


def hold(lock: int, asked: HasFileno | int) -> bool:
    """Wait for the lock of this descriptor; false if a message comes on `asked` first.

    Then whoever sent the message has the device, and needs an answer more than quiet.
    """
    poll = select.poll()
    poll.register(asked, select.POLLIN)
    while not _locked(lock):
        if poll.poll(0):
            return False
        time.sleep(_PAUSE_S)
    return True


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def import_ahead(modules: str) -> None:
    """Import these modules, separated by commas, as far as they are installed."""
    for name in filter(None, modules.split(",")):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
