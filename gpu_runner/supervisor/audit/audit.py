"""The audit of a submission that was found right: sanitizers, and a profiler's own clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from gpu_runner.data.archive import Loaded
from gpu_runner.data.evaluation import BuildReport, EvaluationRequest, WorkloadResult
from gpu_runner.data.facts import Facts
from gpu_runner.data.integrity import Audit, AuditCheck, AuditState, Check, Suspicion
from gpu_runner.data.static import Code
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Verdict
from gpu_runner.supervisor.audit.cpu import CpuSanitizers
from gpu_runner.supervisor.audit.facts import FactFinder
from gpu_runner.supervisor.audit.listed import Lister
from gpu_runner.supervisor.audit.required import CLOCK_CHECK, required_checks
from gpu_runner.supervisor.audit.sanitizer import ComputeSanitizerChecks
from gpu_runner.supervisor.audit.under_tool import Ran, Tool, inconclusive, run_under, suspicious
from gpu_runner.supervisor.build.passes import own_code
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.outside import unconfirmed
from gpu_runner.supervisor.runner.faults import Fault
from gpu_runner.supervisor.runner.loaded import compared
from gpu_runner.supervisor.runner.target import Target, Targets

SMALL_BYTES = 64 << 20
"""Of a call's tensors; larger workloads take a sanitizer too long, unless there is no smaller."""

_WORKLOADS = {  # of each kind, public and hidden: a process for each workload and tool
    DeviceKind.CPU: 2,
    DeviceKind.CUDA: 1,
}
_EVASION = re.compile(
    r"no_sanitize|__SANITIZE_|__(?:a|l|t|ub)san_|no_address_safety|__sanitizer_|has_feature|CUDA_INJECTION|NV_SANITIZER"
    r"|KERNEL_PROFILED|cudaProfiler|cuptiActivity"
)
_SPLICE = re.compile(r"\\[ \t]*\r?\n")


class Auditor:
    """Looks at a submission with tools, when it has been measured and found right."""

    def __init__(
        self,
        request: EvaluationRequest,
        config: SupervisorConfig,
        bench: Bench,
        targets: Targets,
        build: BuildReport | None,
        tell: Callable[[str], None] = lambda words: None,
    ) -> None:
        """`bench` is prepared with the hidden workloads, too; `tell` hears which check comes."""
        self._request, self._config = request, config
        self._bench, self._targets, self._build = bench, targets, build
        self._target = targets.public
        self._tell = tell
        self._known_ns: dict[str, float] = {}

    def audit(self, results: Sequence[WorkloadResult], loaded: Sequence[Loaded]) -> Audit:
        """Run every check; `results` hold the claimed times, `loaded` what has run.

        Raises what a broken host raises, never a fault: what the submission does wrong is a check.
        """
        self._known_ns = {
            result.name: result.measurement.time_ns for result in results if result.measurement
        }
        checks = [clock_check(results), compared(self._request.loaded, loaded)]
        checks += evasion(Code.joined(self._request.solution.texts), self._passes())
        checks += self._sanitizers()
        kernels: tuple[str, ...] = ()
        if self._config.kind is DeviceKind.CUDA:
            self._tell("kernels and time")
            lister = Lister(self._request, self._bench, self._targets, self._build, results)
            found = lister.profiled()
            checks += found.checks
            kernels = found.kernels
        target = self._target
        required = required_checks(self._config.kind, target.abi, target.library)
        facts = self._facts()
        return Audit(checks=tuple(checks), kernels=kernels, required=required, facts=facts)

    def _facts(self) -> Facts:
        self._tell("facts about its use")
        public = self._request.task.workloads_for(
            self._config.kind, self._request.solution.direction, hidden=False
        )
        finder = FactFinder(self._config, self._bench, self._target, self._known_ns)
        return finder.find(public)

    def _passes(self) -> tuple[Code, ...]:
        return own_code(self._target.library) if self._target.library else ()

    def _sanitizers(self) -> Iterator[AuditCheck]:
        request, config, target = self._request, self._config, self._target
        if config.kind is DeviceKind.CPU:
            yield from CpuSanitizers(request, config, target, self._run).checks(self._tell)
        else:
            checks = ComputeSanitizerChecks(request, target, self._build, self._run)
            yield from checks.checks(self._tell)

    def _run(self, target: Target, tool: Callable[[], Tool]) -> list[Ran]:
        processes = [[workload] for workload in self._workloads()]
        return run_under(self._bench, target, processes, tool, self._known_ns)

    def _workloads(self) -> list[Workload]:
        every = self._request.task.workloads_for(
            self._config.kind, self._request.solution.direction, hidden=True
        )
        count = _WORKLOADS[self._config.kind] if self._target.abi is Abi.C else 1
        chosen = small(every, lambda w: self._bench.sizes(w).tensors, count)
        return chosen if self._target.abi is Abi.C else chosen[:1]


def small(
    workloads: Sequence[Workload], size: Callable[[Workload], int], count: int
) -> list[Workload]:
    """The smallest `count` listed workloads, and as many hidden ones that are no smaller.

    A hidden workload below the smallest public one often has a single element, and shows little.
    """
    ordered = sorted(workloads, key=size)
    public = [w for w in ordered if not w.hidden]
    fitting = [w for w in public if size(w) <= SMALL_BYTES] or public[:1]
    hidden = [w for w in ordered if w.hidden and size(w) <= SMALL_BYTES]
    large = [w for w in hidden if not fitting or size(w) >= size(fitting[0])]
    return fitting[:count] + (large or hidden[::-1])[:count]


def clock_check(results: Sequence[WorkloadResult]) -> AuditCheck:
    """Whether the supervisor's own clock can confirm the time of every listed workload."""
    if reason := unconfirmed(results):
        return inconclusive(CLOCK_CHECK, f"{reason}: repeat the audit on a quieter host")
    reason = "it confirms the times of this audit"
    return AuditCheck(name=CLOCK_CHECK, state=AuditState.PASSED, reason=reason)


def evasion(source: Code, passes: Sequence[Code]) -> list[AuditCheck]:
    """A check for a source that treats sanitizers and profilers specially; usually none.

    passes: the source after its macros, as `own_code` tells it.
    """
    whole = _SPLICE.sub("", source.text)  # a name may be written over several lines
    if match := _EVASION.search(whole):
        at = match.start()
        for splice in _SPLICE.finditer(source.text):
            at += len(splice[0]) if splice.start() <= at else 0
        return [_evading(match[0], *source.place(at))]
    for code in passes:  # or pasted by a macro
        if match := _EVASION.search(code.text):
            return [_evading(match[0], *code.place(match.start()))]
    return []


def _evading(name: str, file: str, line: int) -> AuditCheck:
    where = f"{file}, line {line}" if file else f"line {line}"
    why = "which matters only when a profiler or sanitizer is attached"
    return suspicious("evasion", f"{where} mentions {name!r}, {why}")


def fault_of(audit: Audit) -> Fault | None:
    """The verdict that an audit ends in, if a check failed."""
    failed = [check for check in audit.checks if check.state is AuditState.FAILED]
    if not failed:
        return None
    return Fault(Verdict.VIOLATION, f"audit, {failed[0].name}: {failed[0].reason}")


def lists_kernels(audit: Audit) -> bool:
    """Whether a profiler has told which kernels did the work."""
    told = (AuditState.PASSED, AuditState.SUSPICIOUS)
    return any(check.name == "kernels" and check.state in told for check in audit.checks)


def suspicions_of(audit: Audit) -> tuple[Suspicion, ...]:
    """What a person must look at."""
    return tuple(
        Suspicion(check=Check.AUDIT, reason=f"{check.name}: {check.reason}")
        for check in audit.checks
        if check.state is AuditState.SUSPICIOUS
    )
