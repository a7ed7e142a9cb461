"""What was found out about whether a result can be trusted, beside its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpu_runner.data.codec import DataError


class Check(StrEnum):
    """Checks that can raise a `Suspicion`."""

    SOURCE = "source"  # a line of the source trips a static rule
    LIBRARY = "library"  # the built library needs or holds what a kernel does not
    FLOOR = "floor"  # a time below the device's theoretical limit
    LUCK = "luck"  # on a CPU, few calls are far faster than all others
    DEVICE = "device"  # the device was not as it was found before
    AUDIT = "audit"  # an audit's profiler or sanitizer saw something that the result does not say


@dataclass(frozen=True, kw_only=True)
class Suspicion:
    """Something that a person must look at before a result counts. It never decides by itself.

    reason: one line for a person. line: of the source, from 1, where there is one.
    """

    check: Check
    reason: str
    line: int | None = None


@dataclass(frozen=True, kw_only=True)
class Burst:
    """How long `calls` calls that were released together held the runner at least, in ns.

    On a device by the coordinator's clock, less what the host's scheduler gave to others; on a CPU
    by the time that the scheduler has accounted to the runner, less what waiting threads cost.
    large: released with at least half as many calls as it can be.
    """

    calls: int
    held_ns: float
    large: bool = True


@dataclass(frozen=True, kw_only=True)
class OutsideTime:
    """What the coordinator itself knows of one workload's time, in ns.

    bound_ns: a call cannot have taken less, but for error_ns. slope_ns, intercept_ns: of the line
    through the bursts; null_slope_ns, null_intercept_ns: of the same line for a kernel that does
    nothing, and null_deviation_ns how far its bursts typically lie off that. single_ns: of calls
    released one by one, less an empty one, where that is comparable; scatter_ns: how much longer a
    typical one took; null_spread_ns: interquartile range of the empty one. idle_ns: left out for
    each thread that may only have waited. gate_ns: least time of calls that passed the gate, less
    that of an empty one, null_gate_ns; whole_ns, null_whole_ns: the same from when the process was
    let run, where it copies its inputs before.
    """

    bound_ns: float
    error_ns: float
    slope_ns: float
    intercept_ns: float
    null_slope_ns: float
    null_intercept_ns: float
    null_deviation_ns: float | None = None
    null_spread_ns: float | None = None
    idle_ns: float | None = None
    scatter_ns: float | None = None
    single_ns: float | None = None
    gate_ns: float | None = None
    null_gate_ns: float | None = None
    whole_ns: float | None = None
    null_whole_ns: float | None = None
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
    could be made. kernels: names of the device functions that really ran in a profiled call, where
    that is known.
    """

    checks: tuple[AuditCheck, ...]
    kernels: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

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
            return ("its audit does not say which checks it needs",)
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
