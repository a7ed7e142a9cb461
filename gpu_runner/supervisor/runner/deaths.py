"""Why a runner process is silent or gone, by its own doing or by the host's."""

from __future__ import annotations

from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.host.killed import KilledFromOutside, is_from_outside
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.runner.faults import Fault, FaultError, InDoubt

_BY_WHOM = "by itself or by somebody on this host"


def silence(when: str, allowed_s: float, *, stopped: bool) -> FaultError:
    """Why there was no answer in time."""
    limit = f"{allowed_s:g} s"
    if stopped:
        reason = f"no answer {when} within {limit}: it was stopped, {_BY_WHOM}"
        return InDoubt(Fault(Verdict.TIME_LIMIT, reason))
    reason = f"no answer {when} within {limit} (too slow, an endless loop or a deadlock?)"
    return FaultError(Fault(Verdict.TIME_LIMIT, reason))


def death(when: str, child: ChildProcess, status: int | None, *, is_idle: bool) -> FaultError:
    """Why the process is gone; raises `KilledFromOutside` where its code is not the cause."""
    if child.memory_exceeded:
        reason = f"used more memory than allowed {when} (limit {child.memory_limit})"
        return FaultError(Fault(Verdict.MEMORY_LIMIT, reason))
    was_killed = is_from_outside(status)
    if child.killed_from_outside(status) or (was_killed and is_idle):
        raise KilledFromOutside(f"the process was killed from outside {when}")
    if was_killed:
        reason = f"the process was killed {when}, {_BY_WHOM}"
        return InDoubt(Fault(Verdict.RUNTIME_ERROR, reason))
    how = "ended" if status in (0, None) else f"died with status {status}"
    reason = f"the process {how} {when} without an answer"
    return FaultError(Fault(Verdict.RUNTIME_ERROR, reason))
