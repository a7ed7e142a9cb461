"""What is known of a call that a runner process has made."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_runner.data import wire
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.runner.faults import Fault, FaultError


@dataclass(frozen=True)
class Returned:
    """The outputs of a call in the memory of the process that made it, which stands still."""

    pid: int
    call: wire.Call
    done: wire.Done


@dataclass(frozen=True)
class Answer:
    """An acknowledgement, and what the supervisor itself knows of the time that it took."""

    done: wire.Done
    wall_ns: int
    """By the supervisor's clock, on a device until that was seen without work."""
    held_ns: float
    """How much of `wall_ns` the call needed at least.

    On a CPU, the processor time that the scheduler accounted to the runner, which no other load of
    the host disturbs, less what waiting threads cost. On a device, the wall time without what the
    host's scheduler gave to others.
    """
    gate_ns: float | None = None
    """From when the call was let begin until it said that it was over, where it passes a gate."""
    late_ns: int = 0
    """How long others kept this thread from a processor meanwhile.

    A runner may spin for so long: before its call is let begin, or until it is stopped. 0 where a
    runner itself could keep this thread waiting.
    """
    kept_ns: int = 0
    """How long others kept the process from a processor, by the host's scheduler.

    It may include some time before the call was let begin, and after its end: it excuses a process,
    and shortens no time.
    """
    threads: int = 0
    """Of the process, after the call."""
    returned: Returned | None = None
    """Where the call left its outputs; None if that is the memory that it was given."""


def answer_to(number: int, reply: float | wire.Done) -> wire.Done:
    """The reply, if it is the end of the call or burst of this number; raises `FaultError`."""
    if not isinstance(reply, wire.Done) or reply.call_id != number:
        raise FaultError(Fault(Verdict.VIOLATION, "answered something that it wasn't asked"))
    return reply
