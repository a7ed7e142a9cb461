"""Runs a CUDA submission under compute-sanitizer and, for names and times, under ncu."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpu_runner.data.evaluation import BuildReport, EvaluationRequest, WorkloadResult
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.task import Workload
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
from gpu_runner.supervisor.tools.ncu_report import Launch

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


def profiled(
    request: EvaluationRequest,
    bench: CallsUnder,
    target: Target,
    build: BuildReport | None,
    results: Sequence[WorkloadResult],
) -> Profiled:
    """Compare a call's kernels, as ncu sees them, with the build and with the claimed time."""
    began = time.monotonic()
    slowest = max(
        (result for result in results if result.measurement and not result.hidden),
        key=lambda result: result.measurement.time_ns if result.measurement else 0.0,
        default=None,
    )
    path = ncu.find()
    if not path or slowest is None or slowest.measurement is None:
        reason = "no public workload was measured" if path else "ncu is not installed"
        return Profiled([skipped(name, reason) for name in PROFILED_CHECKS])
    workload = next(w for w in request.task.workloads if w.name == slowest.name)
    seen = _look(path, bench, target, workload, slowest.measurement.time_ns)
    if seen.exhausted:
        return Profiled([inconclusive(name, seen.exhausted) for name in PROFILED_CHECKS])
    if seen.reason:
        return Profiled([skipped(name, seen.reason) for name in PROFILED_CHECKS])
    resources = build.resources if build else ()
    libraries = request.task.libraries
    claimed_ns = slowest.measurement.time_ns
    checks = [
        kernel_list.kernels_check(
            "kernels", seen.launches, resources, libraries=libraries, is_module=target.is_module
        ),
        kernel_list.time_check("time", claimed_ns, seen.launches, workload.name)
        if all(seen.launches)
        else skipped("time", "no kernel was seen"),
    ]
    spent = (time.monotonic() - began) / len(checks)
    names = dict.fromkeys(launch.name for launch in seen.launches[0])
    return Profiled([replace(check, duration_s=spent) for check in checks], tuple(names))


def _look(
    path: str, bench: CallsUnder, target: Target, workload: Workload, claimed_ns: float
) -> _Seen:
    """The kernels of one call in each of two processes, or why ncu saw none."""
    launches, known_ns = [], {workload.name: claimed_ns}
    for _ in range(_CALLS):
        tool = functools.partial(ncu.Ncu, path, timed=True)
        ran = run_under(bench, target, [workload], tool, known_ns)[0]
        found = ncu_report.parse(ran.report)
        fault = ran.fault
        if not found and fault and (exhausted := exhaustion(fault, ran.report)):
            return _Seen(exhausted=f"{exhausted}: {fault.reason}")
        if not found and (reason := _complaint(ran)):
            return _Seen(reason=reason)
        launches.append(found)
    return _Seen(launches)


def _complaint(ran: Ran) -> str:
    """Why ncu saw no kernel; empty if it worked and there was none."""
    if complaint := ncu.complaint(ran.report, ""):
        return f"ncu does not work on this host: {complaint}"
    if ran.fault is not None:
        return f"ncu saw nothing: {ran.fault.reason}"
    return "" if "==PROF==" in ran.report or "No kernels" in ran.report else ncu.SAW_NOTHING
