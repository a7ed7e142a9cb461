"""Why a measured process ends an evaluation: by its author's fault, or by this host's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from gpu_runner.data import wire
from gpu_runner.data.verdict import Verdict

_FOLDERS = re.compile(r"/\S+/(?=[^/\s]+\.so\b)")


@dataclass(frozen=True)
class Fault:
    """Why an evaluation ends without CORRECT: the verdict and a sentence for the author."""

    verdict: Verdict
    reason: str


class FaultError(Exception):
    """Carries a `Fault` of the runner, and what it had printed, up to the evaluation."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault
        self.output = ""


class Prints(Protocol):
    """What runs a process."""

    @property
    def output(self) -> str:
        """What the process printed."""
        ...


@contextmanager
def keeping_output(process: Prints) -> Iterator[None]:
    """Give a fault what a process had printed, before the process is gone."""
    try:
        yield
    except FaultError as error:
        error.output = process.output
        raise


@contextmanager
def naming(workload: str, arguments: Sequence[str]) -> Iterator[None]:
    """Say of a call that fails which workload it was for, and name the arguments it speaks of."""
    try:
        yield
    except FaultError as error:
        reason = error.fault.reason
        for number, name in enumerate(arguments, 1):
            reason = re.sub(rf"\bargument {number}\b", f"argument {number} ({name})", reason)
        if f"on {workload}" not in reason:
            reason = f"{reason}, on {workload}"
        error.fault = replace(error.fault, reason=reason)
        raise


class InDoubt(FaultError):
    """A fault of the submission or of this host: who else would do this to a process in a call?

    Another process that does the same tells: see `preemption.patient`.
    """


class RunnerUnfit(Exception):
    """The runner itself cannot work on this host; never the author's fault."""


class NoRoom(RunnerUnfit):
    """The device's memory is full, and others hold much of it."""


def told(failed: wire.Failed, when: str, *, is_module: bool) -> Fault:
    """The fault that a runner itself reports."""
    text = failed.text.strip() or failed.code.name.lower()
    match failed.code:
        case wire.ErrorCode.MEMORY:
            return Fault(Verdict.MEMORY_LIMIT, f"out of memory {when}: {text}")
        case wire.ErrorCode.SYMBOL:
            what = "module" if is_module else "library"
            words = _FOLDERS.sub("", text)  # of this host
            return Fault(Verdict.COMPILE_ERROR, f"the {what} can't be used: {words}")
        case wire.ErrorCode.INPUT_WRITE:
            return Fault(Verdict.VIOLATION, f"{text}: inputs must not be changed")
        case wire.ErrorCode.INPUT_RETURNED:
            return Fault(Verdict.VIOLATION, text)
        case wire.ErrorCode.SHAPE:
            return Fault(Verdict.WRONG_SHAPE, text)
        case wire.ErrorCode.SIGNAL:
            hint = " (a null pointer)" if "(nil)" in text else ""
            return Fault(Verdict.RUNTIME_ERROR, f"{text}{hint} {when}")
    return Fault(Verdict.RUNTIME_ERROR, f"{text} ({when})")
