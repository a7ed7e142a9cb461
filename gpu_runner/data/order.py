"""What a site and a runner say to each other about jobs, whichever way it travels.

A runner asks (`Ask`) and gets an `Order`, or nothing. It reports `Event`s, and reads the site's
latest `Word`. A site's own hosts use Redis for that, others HTTPS or a folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.queue import Urgency

_NAME = re.compile(r"([a-z]{1,20})-([0-9A-Za-z-]{1,100})-([1-9][0-9]{0,8})")
_TICKET = re.compile(r"[0-9a-f]{32}")
LONGEST_NAME = 100
"""Characters of what a runner calls itself."""
_RUNNER = re.compile(rf"[0-9A-Za-z][0-9A-Za-z._-]{{0,{LONGEST_NAME - 1}}}")
_BOOT = re.compile(r"[0-9A-Za-z-]{1,64}")
_DEVICE = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


_ENDS_OF_QUEUES = tuple(each.value for each in Urgency if each.value)
"""A device whose name ended so would share a queue with another one."""


@dataclass(frozen=True)
class JobName:
    """Which attempt of which job; its `kind` is the `KIND` of its request."""

    kind: str
    job_id: str
    attempt: int

    @classmethod
    def read(cls, text: str) -> JobName:
        """The name in that text; raises `DataError`."""
        found = _NAME.fullmatch(text)
        if found is None:
            raise DataError(text, "is not a job name such as evaluation-ID-1")
        return cls(found[1], found[2], int(found[3]))

    def event(self, seq: int, kind: EventKind, payload: Mapping[str, Any]) -> Event:
        """A fact of it."""
        return Event(
            job=self.kind,
            job_id=self.job_id,
            attempt=self.attempt,
            seq=seq,
            kind=kind,
            payload=payload,
        )

    def __str__(self) -> str:
        """As files, queues and heartbeats have it."""
        return f"{self.kind}-{self.job_id}-{self.attempt}"


@dataclass(frozen=True, kw_only=True)
class Order:
    """One attempt of a job, with everything that a runner may know of it.

    timeout_s: how long it may take. request: the encoded request of its kind.
    """

    kind: str
    job_id: str
    attempt: int
    timeout_s: int
    request: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Refuse a name that cannot be read."""
        JobName.read(str(self.name))

    @property
    def name(self) -> JobName:
        return JobName(self.kind, self.job_id, self.attempt)


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A runner asks for a job.

    runner, boot_id, device: as in its heartbeats. urgencies: what it would take, the most urgent
    first. ticket: 128 random bits in hex. The same ticket always gets the same order, so that an
    answer which was lost on its way can be asked for again. job: the one that it wants, by name;
    empty for whichever is next.
    """

    runner: str
    boot_id: str
    device: str
    urgencies: tuple[Urgency, ...]
    ticket: str
    job: str = ""

    def __post_init__(self) -> None:
        """Refuse a ticket that could be guessed, and what no runner says of itself."""
        if not _TICKET.fullmatch(self.ticket):
            raise DataError("ticket", "must be 32 hexadecimal digits")
        check_runner("runner", self.runner, self.boot_id, self.device)
        if len(set(self.urgencies)) < len(self.urgencies):
            raise DataError("urgencies", "lists an urgency twice")


@dataclass(frozen=True, kw_only=True)
class Word:
    """What the site wants of a runner: `hold` says why it may take no job, or is empty.

    dropped: names of jobs which it works at, and which are no longer its own.
    """

    hold: str = ""
    dropped: tuple[str, ...] = ()


def check_runner_name(field: str, name: str) -> None:
    """Raise `DataError` for a name that no runner can have."""
    if not _RUNNER.fullmatch(name):
        raise DataError(
            field,
            f"must be 1 to {LONGEST_NAME} letters, digits, dots, dashes and underscores,"
            " starting with a letter or digit",
        )


def check_runner(field: str, name: str, boot_id: str, device: str) -> None:
    """Raise `DataError` for a name (in that field), a boot or a device that no runner can have."""
    check_runner_name(field, name)
    if not _BOOT.fullmatch(boot_id):
        raise DataError("boot_id", "must be 1 to 64 letters, digits and dashes")
    if not _DEVICE.fullmatch(device) or device.endswith(_ENDS_OF_QUEUES):
        raise DataError("device", f"{device[:100]!r} is not a valid device name")
