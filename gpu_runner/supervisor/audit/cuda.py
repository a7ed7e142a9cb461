"""Runs a CUDA submission under compute-sanitizer and, for names and times, under ncu."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpu_runner.data.evaluation import BuildReport, EvaluationRequest, WorkloadResult
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.verdict import Abi
from gpu_runner.supervisor.audit import sanitizer
from gpu_runner.supervisor.audit.required import PROFILED_CHECKS
from gpu_runner.supervisor.audit.sanitizer_report import Finding
from gpu_runner.supervisor.audit.under_tool import (
    CallsUnder,
    Ran,
    WrappedRun,
    check_of,
    exhaustion,
    inconclusive,
    run_under,
    skipped,
)
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import kernel_list, ncu, ncu_report
from gpu_runner.supervisor.tools.kernel_list import Ownership
from gpu_runner.supervisor.tools.ncu_report import Launch
from gpu_runner.supervisor.work.attribution import Worked

_CALLS = 2  # each in a process of its own

_BY_HAND = re.compile(
    r"\basm\b|mbarrier|cuda::(?:barrier|atomic|pipeline)|atomic_ref|memcpy_async|wgmma"
    r"|__threadfence|\batomic(?:CAS|Exch)"
)
_ORDER = ("racecheck", "synccheck")


class ComputeSanitizerChecks:
    """One check for each of compute-sanitizer's tools."""

    def __init__(
        self,
        request: EvaluationRequest,
        target: Target,
        build: BuildReport | None,
        run: WrappedRun,
    ) -> None:
        """`run` makes a few calls under a wrapper, on each of the audit's workloads."""
        self._request, self._target = request, target
        self._build, self._run = build, run

    def checks(self, tell: Callable[[str], None]) -> Iterator[AuditCheck]:
        """Every check, in order; `tell` hears which one comes now."""
        path = sanitizer.find()
        if not path:
            missing = "compute-sanitizer is not installed"
            yield from (skipped(name, missing) for name in sanitizer.TOOLS)
            return
        for name in sanitizer.TOOLS:
            tell(name)
            began = time.monotonic()
            check = self._check(path, name)
            yield replace(check, duration_s=time.monotonic() - began)

    def _check(self, path: str, name: str) -> AuditCheck:
        outcome = self._run(self._target, lambda: sanitizer.ComputeSanitizer(path, name))
        check = check_of(name, outcome, self._find, sanitizer.unfinished)
        by_hand = _BY_HAND.search(self._request.solution.source)
        if check.state is not AuditState.FAILED or name not in _ORDER or by_hand is None:
            return check
        doubt = f"{check.reason}; the source orders threads by {by_hand[0]!r}, which {name}"
        reason = f"{doubt} may not follow"
        return replace(check, state=AuditState.SUSPICIOUS, reason=reason)

    def _find(self, report: str) -> list[Finding]:
        if self._target.abi is Abi.C:
            return sanitizer.device_findings(report)
        resources = self._build.resources if self._build else ()
        own = [kernel_list.plain(kernel.name) for kernel in resources]
        return sanitizer.device_findings(report, [*own, "kernel.cu:"])


@dataclass
class Profiled:
    """What ncu says of a submission: two checks, and the names of the kernels that ran."""

    checks: list[AuditCheck]
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Seen:
    launches: list[list[Launch]] = field(default_factory=list)
    reason: str = ""
    exhausted: str = ""
    workload: str = ""
    claimed_ns: float = 0.0


def profiled(
    request: EvaluationRequest,
    bench: CallsUnder,
    target: Target,
    build: BuildReport | None,
    results: Sequence[WorkloadResult],
) -> Profiled:
    """Compare a call's kernels, as ncu sees them, with the build and with the claimed time."""
    began = time.monotonic()
    seen = _look(request, bench, target, results, _CALLS)
    if seen.exhausted:
        return Profiled([inconclusive(name, seen.exhausted) for name in PROFILED_CHECKS])
    if seen.reason:
        return Profiled([skipped(name, seen.reason) for name in PROFILED_CHECKS])
    checks = [
        kernel_list.kernels_check(
            seen.launches,
            _ownership(request, target, build),
            seen.workload,
            libraries=request.task.libraries,
        ),
        kernel_list.time_check(seen.claimed_ns, seen.launches, seen.workload)
        if all(seen.launches)
        else skipped("time", "no kernel was seen"),
    ]
    spent = (time.monotonic() - began) / len(checks)
    names = dict.fromkeys(launch.name for launch in seen.launches[0])
    return Profiled([replace(check, duration_s=spent) for check in checks], tuple(names))


def work_on_gpu(
    request: EvaluationRequest,
    bench: CallsUnder,
    target: Target,
    build: BuildReport | None,
    results: Sequence[WorkloadResult],
) -> Worked | None:
    """Who does the work of a call on the device, by ncu; None where it does not tell."""
    seen = _look(request, bench, target, results, 1)
    if not any(seen.launches):
        return None
    return _ownership(request, target, build).work(seen.launches[0], seen.workload)


def _ownership(request: EvaluationRequest, target: Target, build: BuildReport | None) -> Ownership:
    resources = build.resources if build else ()
    return Ownership(resources, request.solution.source, target.is_module)


def _look(
    request: EvaluationRequest,
    bench: CallsUnder,
    target: Target,
    results: Sequence[WorkloadResult],
    calls: int,
) -> _Seen:
    """The kernels of one call in each of so many processes, or why ncu saw none."""
    path = ncu.find()
    times_ns = {r.name: r.measurement.time_ns for r in results if r.measurement and not r.hidden}
    if not path or not times_ns:
        return _Seen(reason="no public workload was measured" if path else "ncu is not installed")
    name = max(times_ns, key=times_ns.__getitem__)
    workload = next(w for w in request.task.workloads if w.name == name)
    launches = []
    for _ in range(calls):
        tool = functools.partial(ncu.Ncu, path, timed=True)
        ran = run_under(bench, target, [workload], tool, times_ns)[0]
        found = ncu_report.parse(ran.report)
        fault = ran.fault
        if not found and fault and (exhausted := exhaustion(fault, ran.report)):
            return _Seen(exhausted=f"{exhausted}: {fault.reason}")
        if not found and (reason := _complaint(ran)):
            return _Seen(reason=reason)
        launches.append(found)
    return _Seen(launches, workload=name, claimed_ns=times_ns[name])


def _complaint(ran: Ran) -> str:
    """Why ncu saw no kernel; empty if it worked and there was none."""
    if complaint := ncu.complaint(ran.report, ""):
        return f"ncu does not work on this host: {complaint}"
    if ran.fault is not None:
        return f"ncu saw nothing: {ran.fault.reason}"
    return "" if "==PROF==" in ran.report or "No kernels" in ran.report else ncu.SAW_NOTHING
