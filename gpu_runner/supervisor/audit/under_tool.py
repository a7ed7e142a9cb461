"""Turns what a tool saw of a few calls into one check of an audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.audit.sanitizer_report import Finding, ran_out
from gpu_runner.supervisor.runner.faults import Fault, FaultError, NoRoom
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper

REPORT_LIMIT_CHARACTERS = 8 * 1024  # chosen: what a person reads; the first findings tell most
TOOL_LIMIT_S = 180.0
"""After this long no further process is started under a tool; each has its own limits, too."""

STARTING = "while it was starting"
"""In the reasons of faults that come before a submission is loaded: they are the tool's own."""


class Tool(Wrapper, AbstractContextManager["Tool"], Protocol):
    """A wrapper with a report of its own."""

    def report(self) -> str:
        """What the tool said."""


@dataclass(frozen=True)
class Ran:
    """One process under a tool: what it said, and how the process ended if not well."""

    report: str
    hidden: bool
    fault: Fault | None = None


WrappedRun = Callable[[Target, Callable[[], Tool]], Sequence[Ran]]
"""Makes calls in a fresh process for each of the audit's workloads, under a tool of its own."""


class CallsUnder(Protocol):
    """The part of a bench that an audit needs."""

    def run_profiled(self, target: Target, workloads: Sequence[Workload], ncu: Wrapper) -> str:
        """Make two calls of each in a process under a wrapper. Raises `FaultError`."""


def run_under(
    bench: CallsUnder,
    target: Target,
    processes: Sequence[Sequence[Workload]],
    tool: Callable[[], Tool],
    known_ns: Mapping[str, float] | None = None,
) -> list[Ran]:
    """Make calls on each process's workloads; a fault ends it, for the next would meet it again.

    Workloads for which no time is left end it with a fault as well. `known_ns` is how long a call
    takes without the tool, by workload: whoever reads that time ran out should know.
    """
    found: list[Ran] = []
    began = time.monotonic()
    for workloads in processes:
        workload = workloads[0]
        if found and time.monotonic() - began > TOOL_LIMIT_S:
            late = f"only {len(found)} of {len(processes)} workloads ran within {TOOL_LIMIT_S:g} s"
            found.append(Ran("", workload.hidden, Fault(Verdict.TIME_LIMIT, late)))
            break
        with tool() as wrapper:
            fault = None
            try:
                bench.run_profiled(target, workloads, wrapper)
            except FaultError as error:
                fault = _beside(error.fault, (known_ns or {}).get(workload.name))
            except NoRoom as error:  # the tool's share of it may have been too much
                fault = Fault(Verdict.MEMORY_LIMIT, str(error))
            found.append(Ran(wrapper.report(), workload.hidden, fault))
        if fault is not None:
            break
    return found


def _beside(fault: Fault, known_ns: float | None) -> Fault:
    """The fault, with what a call takes without the tool where one took too long under it."""
    if fault.verdict is not Verdict.TIME_LIMIT or known_ns is None or STARTING in fault.reason:
        return fault
    without = f"without the tool it takes {duration_text(known_ns)}"
    return replace(fault, reason=f"{fault.reason}; {without}")


def check_of(
    name: str,
    outcome: Sequence[Ran],
    find: Callable[[str], Sequence[Finding]],
    unfinished: Callable[[str], str] = lambda report: "",
) -> AuditCheck:
    """The check that comes of what a tool saw in all its processes.

    `find` reads a report; `unfinished` says why a report without findings means nothing.

    Of hidden workloads nothing is told but that it was on one. A process that dies under a tool,
    and without it did not, is for a person to look at, unless it had not yet loaded the submission.
    A tool that needs more time or memory than there is says nothing, and accuses nobody: blocks or
    threads that wait for each other by hand can stand still under one, and be right without it.
    """
    notes: list[str] = []
    for ran in outcome:
        for finding in find(ran.report):
            if finding.breaks:
                return _failed(name, finding, ran)
            if not ran.hidden:
                notes.append(finding.words)
    died = next((ran for ran in outcome if ran.fault is not None), None)
    if died is not None and died.fault is not None:
        return _died(name, died, died.fault)
    for ran in outcome:
        if reason := unfinished(ran.report):
            return _unfinished(name, ran, reason)
    calls = f"{len(outcome)} small workload{'s' if len(outcome) != 1 else ''}"
    remarks = f"; noted: {'; '.join(dict.fromkeys(notes))}"[:500] if notes else ""
    return AuditCheck(name=name, state=AuditState.PASSED, reason=f"nothing on {calls}{remarks}")


def _unfinished(name: str, ran: Ran, reason: str) -> AuditCheck:
    if ran.hidden:
        return inconclusive(name, "it did not finish on a hidden workload")
    return inconclusive(name, reason, ran.report)


def _failed(name: str, finding: Finding, ran: Ran) -> AuditCheck:
    if ran.hidden:
        return AuditCheck(
            name=name, state=AuditState.FAILED, reason="found something on a hidden workload"
        )
    return AuditCheck(
        name=name, state=AuditState.FAILED, reason=finding.words, report=cut(ran.report)
    )


def _died(name: str, ran: Ran, fault: Fault) -> AuditCheck:
    reason = "a process ended on a hidden workload" if ran.hidden else fault.reason
    report = "" if ran.hidden else ran.report
    if STARTING in fault.reason:
        return skipped(name, f"it does not work on this host: {reason}", report)
    if exhausted := exhaustion(fault, ran.report):
        return inconclusive(name, f"{exhausted}: {reason}", report)
    return suspicious(name, f"the tool gave no report: {reason}", report)


def exhaustion(fault: Fault, report: str) -> str:
    """What ran out when a process ended with this fault under a tool; empty if nothing did."""
    if fault.verdict is Verdict.MEMORY_LIMIT or ran_out(report):
        return "it needs more memory than this host has"
    return "it needs more time than it was given" if fault.verdict is Verdict.TIME_LIMIT else ""


def skipped(name: str, reason: str, report: str = "") -> AuditCheck:
    """A check that could not be made here, and why."""
    return AuditCheck(name=name, state=AuditState.SKIPPED, reason=reason, report=cut(report))


def inconclusive(name: str, reason: str, report: str = "") -> AuditCheck:
    """A check that was begun and says nothing, and why."""
    return AuditCheck(name=name, state=AuditState.INCONCLUSIVE, reason=reason, report=cut(report))


def suspicious(name: str, reason: str, report: str = "") -> AuditCheck:
    """A check that a person must look at."""
    return AuditCheck(name=name, state=AuditState.SUSPICIOUS, reason=reason, report=cut(report))


def cut(report: str) -> str:
    """The beginning of a report, where its first error is."""
    return report[:REPORT_LIMIT_CHARACTERS]
