"""Lists the kernels that a submission's calls launch, by ncu, and says whose work that was."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat

from gpu_runner.data.evaluation import BuildReport, EvaluationRequest, WorkloadResult
from gpu_runner.data.integrity import AuditCheck, AuditState, Check, Suspicion
from gpu_runner.data.task import Workload
from gpu_runner.supervisor.audit.required import PROFILED_CHECKS
from gpu_runner.supervisor.audit.under_tool import (
    CallsUnder,
    Ran,
    exhaustion,
    inconclusive,
    run_under,
    skipped,
)
from gpu_runner.supervisor.runner.target import Target, Targets
from gpu_runner.supervisor.tools import kernel_list, ncu
from gpu_runner.supervisor.tools.kernel_list import Ownership
from gpu_runner.supervisor.tools.ncu import Launch
from gpu_runner.supervisor.work.attribution import Worked, told_name

_CALLS = 2  # each in a process of its own


@dataclass
class Profiled:
    """What ncu says of a submission: two checks, and the names of the kernels that ran."""

    checks: list[AuditCheck]
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listed:
    """Who did the work where libraries do most of it, and which claims are too short."""

    worked: Worked
    suspicions: list[Suspicion]


@dataclass(frozen=True)
class _Seen:
    """The kernels of a call of each workload, in their order; or why some are missing.

    Whoever parts the calls of the last workload further gains nothing: each part is judged.
    """

    parts: list[tuple[str, list[Launch]]] = field(default_factory=list)
    reason: str = ""
    is_exhausted: bool = False


class Lister:
    """Lists kernels of calls.

    A Python module is asked about every workload that was timed, as it may call a library on some
    of them alone. Of C, where every library that is loaded is known, the longest is enough.
    """

    def __init__(
        self,
        request: EvaluationRequest,
        bench: CallsUnder,
        targets: Targets,
        build: BuildReport | None,
        results: Sequence[WorkloadResult],
    ) -> None:
        """`results` hold the claimed times."""
        self._bench, self._targets = bench, targets
        self._libraries = request.task.libraries
        times_ns = {r.name: r.measurement.time_ns for r in results if r.measurement}
        timed = [w for w in request.task.workloads if w.timed and w.name in times_ns]
        public = [w for w in timed if not w.hidden]
        longest = max(public, key=lambda workload: times_ns[workload.name], default=None)
        is_python = targets.public.python
        self._public = public if is_python or longest is None else [longest]
        self._longest = self._public.index(longest) if longest else 0
        self._unlisted = [w for w in timed if w.hidden and is_python]
        self._times_ns = times_ns
        self._ownership = Ownership(
            build.resources if build else (), request.solution.whole, targets.public.is_module
        )

    def profiled(self) -> Profiled:
        """Compare a call's kernels with the build, and with the claimed time."""
        began = time.monotonic()
        seen = [self._look(self._targets.public, self._public)]
        if not seen[0].reason:
            seen += [self._look(self._targets.public, self._public) for _ in range(_CALLS - 1)]
        if failed := next((one for one in seen if one.reason), None):
            state = inconclusive if failed.is_exhausted else skipped
            return Profiled([state(name, failed.reason) for name in PROFILED_CHECKS])
        unlisted, calls = self._look_at_unlisted(), self._calls(seen)
        checks = [self._kernels(seen, unlisted), self._time(seen, unlisted)]
        spent = (time.monotonic() - began) / len(checks)
        names = dict.fromkeys(launch.name for launch in calls[0])
        return Profiled([replace(check, duration_s=spent) for check in checks], tuple(names))

    def listed(self) -> Listed | None:
        """What one run of the profiler says of the calls; None if ncu can't tell."""
        seen = self._look(self._targets.public, self._public)
        if not any(launches for _, launches in seen.parts):
            return None
        unlisted = self._look_at_unlisted()
        short = self._short([seen], unlisted)
        suspicions = [Suspicion(check=Check.CLOCK, reason=check.reason) for check in short]
        return Listed(max(self._works(seen, unlisted), key=_share), suspicions)

    def _calls(self, seen: Sequence[_Seen]) -> list[list[Launch]]:
        """The kernels of the longest call, as each of these looks has seen them."""
        return [dict(enumerate(one.parts)).get(self._longest, ("", []))[1] for one in seen]

    def _time(self, seen: Sequence[_Seen], unlisted: _Seen) -> AuditCheck:
        """Whether claims are as long as their kernels, of the longest call all together."""
        calls, name = self._calls(seen), self._public[self._longest].name
        if not all(calls):
            return skipped("time", "no kernel was seen")
        whole = kernel_list.time_check(self._times_ns[name], calls, name)
        return next(filter(_is_short, (whole, *self._short(seen, unlisted))), whole)

    def _short(self, seen: Sequence[_Seen], unlisted: _Seen) -> list[AuditCheck]:
        """Claims that are shorter than the longest kernel of their calls, by two looks."""
        found = self._shorter(seen, self._public)
        if found and len(seen) == 1:
            again = self._look(self._targets.public, self._public)
            found = self._shorter([*seen, again], self._public)
        hidden = self._shorter([unlisted], self._unlisted)
        if hidden:
            hidden = self._shorter([unlisted, self._look_at_unlisted()], self._unlisted)
        return [*found, *map(_untold, hidden[:1])]

    def _shorter(self, seen: Sequence[_Seen], workloads: Sequence[Workload]) -> list[AuditCheck]:
        """The same by the quickest of these looks."""
        looks = [parts for one in seen if any(parts := [launches for _, launches in one.parts])]
        if any(len(parts) > len(workloads) for parts in looks):
            reason = "it launches a kernel named spin_kernel, a name that kbench uses to mark calls"
            return [AuditCheck(name="time", state=AuditState.SUSPICIOUS, reason=reason)]
        checks = [
            kernel_list.time_check(self._times_ns[each.name], calls, each.name, is_whole=False)
            for each, *calls in zip(workloads, *looks, strict=False)
            if calls and all(calls)
        ]
        return list(filter(_is_short, checks))

    def _kernels(self, seen: Sequence[_Seen], unlisted: _Seen) -> AuditCheck:
        works = [] if self._libraries else self._works(*seen, unlisted)
        check = kernel_list.kernels_check(self._calls(seen), self._ownership, works)
        if check.state is AuditState.PASSED and unlisted.reason:
            return inconclusive(check.name, "ncu saw no kernel on unlisted sizes")
        return check

    def _works(self, *seen: _Seen) -> list[Worked]:
        return [
            self._ownership.work(launches, name) for one in seen for name, launches in one.parts
        ]

    def _look_at_unlisted(self) -> _Seen:
        return self._look(self._targets.hidden(), self._unlisted) if self._unlisted else _Seen()

    def _look(self, target: Target, workloads: Sequence[Workload]) -> _Seen:
        path = ncu.find()
        if not path or not workloads:
            lacking = "no listed workload was measured" if path else "ncu is not installed"
            return _Seen(reason=lacking)
        tool = functools.partial(ncu.Ncu, path, timed=len(workloads))
        ran = run_under(self._bench, target, [workloads], tool, self._times_ns)[0]
        parts = ncu.parted(ncu.parse(ran.report))
        names = [told_name(workload) for workload in workloads]
        seen = _Seen(list(zip(chain(names, repeat(names[-1])), parts, strict=False)))
        is_whole = any(parts) and len(parts) >= len(workloads)
        return seen if is_whole else replace(_lacking(ran, has_some=any(parts)), parts=seen.parts)


def _lacking(ran: Ran, *, has_some: bool) -> _Seen:
    """Why ncu didn't see the kernels of every call; no reason if it worked and there were none."""
    fault = ran.fault
    if fault is not None and (exhausted := exhaustion(fault, ran.report)):
        return _Seen(reason=f"{exhausted}: {fault.reason}", is_exhausted=True)
    if complaint := ncu.complaint(ran.report, ""):
        return _Seen(reason=f"ncu does not work on this host: {complaint}")
    if fault is not None:
        return _Seen(reason=f"ncu saw nothing: {fault.reason}")
    if has_some:
        return _Seen(reason="ncu saw the kernels of only some calls")
    worked = "==PROF==" in ran.report or "No kernels" in ran.report
    return _Seen(reason="" if worked else ncu.SAW_NOTHING)


def _is_short(check: AuditCheck) -> bool:
    return check.state is AuditState.SUSPICIOUS


def _untold(check: AuditCheck) -> AuditCheck:
    """The same without figures, which could tell sizes."""
    return replace(
        check, reason="on unlisted sizes, a kernel took longer than the time claimed for the call"
    )


def _share(worked: Worked) -> float:
    return worked.libraries.total() / max(worked.seen, 1)
