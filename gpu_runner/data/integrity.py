"""What was found out about whether a result can be trusted, beside its verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gpu_runner.data.codec import LEFT_OUT, DataError
from gpu_runner.data.facts import Facts


class Check(StrEnum):
    """Checks that can raise a `Suspicion`."""

    SOURCE = "source"  # a line of the source trips a static rule
    LIBRARY = "library"  # the built library needs or holds what a kernel does not
    FLOOR = "floor"  # a time below the device's theoretical limit
    LUCK = "luck"  # on a CPU, few calls are far faster than all others
    CLOCK = "clock"  # claims far below what the supervisor's own clock, or a profiler, saw
    DEVICE = "device"  # the device was not as it was found before
    LOADED = "loaded"  # a measured process ran code that was not compiled from its source
    WORK = "work"  # a library did what the task asks of the kernel itself
    AUDIT = "audit"  # an audit's profiler or sanitizer saw something that the result does not say


@dataclass(frozen=True, kw_only=True)
class Suspicion:
    """Something that a person must look at before a result counts. It never decides by itself.

    reason: one line for a person. line: of the source, from 1, where there is one. file: in which
    that line stands, if not in the entry.
    """

    check: Check
    reason: str
    line: int | None = None
    file: str = field(default="", metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class Burst:
    """How long `calls` calls that were released together held a GPU's runner at least, in ns.

    By the supervisor's clock, less what the host's scheduler gave to others. large: released with
    at least half as many calls as it can be.
    """

    calls: int
    held_ns: float
    large: bool = True


@dataclass(frozen=True, kw_only=True)
class OutsideTime:
    """What the supervisor itself knows of one workload's time, in ns.

    bound_ns: a call cannot have taken less, but for error_ns.
    On a CPU, cpu_ns: least processor time of a call, less an empty one's, which scatters by
    null_spread_ns; idle_ns: left out of it for each thread that may only have waited. gate_ns:
    least time of a call of the c ABI from when it was let begin until it was over, less an empty
    one's, null_gate_ns; None of a torch extension, which processor time alone bounds.
    On a GPU, null_slope_ns, null_intercept_ns: of the line through bursts of a kernel that does
    nothing, which lie off it by null_deviation_ns.
    """

    bound_ns: float
    error_ns: float
    cpu_ns: float | None = None
    null_spread_ns: float | None = None
    idle_ns: float | None = None
    gate_ns: float | None = None
    null_gate_ns: float | None = None
    null_slope_ns: float | None = None
    null_intercept_ns: float | None = None
    null_deviation_ns: float | None = None
    bursts: tuple[Burst, ...] = ()


class AuditState(StrEnum):
    """Outcome of one check of an audit."""

    PASSED = "passed"
    FAILED = "failed"  # the kernel broke a rule
    SUSPICIOUS = "suspicious"  # a person must look
    SKIPPED = "skipped"  # the tool is not on this host, or does not fit; the reason says why
    INCONCLUSIVE = "inconclusive"  # the tool ran out of time or memory, or ended without a report


@dataclass(frozen=True, kw_only=True)
class AuditCheck:
    """One check of an audit, such as `memcheck`; `report` is the tool's own words, cut."""

    name: str
    state: AuditState
    reason: str
    duration_s: float = 0.0
    report: str = ""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """All checks of an audit, in the order in which they ran.

    required: names of the checks that this submission needs on this device, whether or not they
    could be made. kernels: names of the device functions that actually ran in a profiled call,
    where that is known. facts: what people ask before they use it; none is a check.
    """

    checks: tuple[AuditCheck, ...]
    kernels: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    facts: Facts | None = field(default=None, metadata=LEFT_OUT)

    def __post_init__(self) -> None:
        """Refuse two checks of the same name."""
        names = [check.name for check in self.checks]
        if len(set(names)) != len(names):
            raise DataError("checks", "two checks have the same name")

    @property
    def passed(self) -> bool:
        """Whether every required check passed, and no check failed or raised a suspicion."""
        states = {check.state for check in self.checks}
        bad = {AuditState.FAILED, AuditState.SUSPICIOUS}
        return not states & bad and not self.lacking()

    def lacking(self, *, cleared: bool = False) -> tuple[str, ...]:
        """Why it verifies nothing: the required checks that did not pass, by reason.

        An audit that requires no check shows nothing either. cleared: a person has looked at what
        was suspicious, and such a check is not lacking.
        """
        if not self.required:
            return ("its audit does not say which checks it requires",)
        enough = {AuditState.PASSED} | ({AuditState.SUSPICIOUS} if cleared else set())
        made = {check.name: check for check in self.checks}
        reasons: dict[str, list[str]] = {}
        for name in self.required:
            check = made.get(name)
            if check is None:
                reasons.setdefault("not made", []).append(name)
            elif check.state not in enough:
                reasons.setdefault(f"{check.state}: {check.reason}", []).append(name)
        return tuple(f"{', '.join(names)} {reason}" for reason, names in reasons.items())
