"""Runs a CUDA submission under compute-sanitizer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from gpu_runner.data.evaluation import BuildReport, EvaluationRequest
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.verdict import Abi
from gpu_runner.supervisor.audit import sanitizer
from gpu_runner.supervisor.audit.sanitizer_report import Finding
from gpu_runner.supervisor.audit.under_tool import WrappedRun, check_of, skipped
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import kernel_list

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
        by_hand = _BY_HAND.search(self._request.solution.whole)
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
        files = [f"{name}:" for name in self._request.solution.texts]
        return sanitizer.device_findings(report, [*own, *files])
