"""Looks for races in a CPU submission, whether or not its threads happen to meet in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.integrity import AuditState
from gpu_runner.data.protocol import RACE_CALL_NS, RACE_SEARCH_S
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Verdict
from gpu_runner.supervisor.audit.cpu import THREADS, TORCH_REASON, CpuSanitizers
from gpu_runner.supervisor.audit.required import starts_threads
from gpu_runner.supervisor.audit.under_tool import CallsUnder, Ran, Tool, run_under
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target

_HINT = "is a reduction, an atomic or a barrier missing?"


class RaceSearch:
    """Makes calls under ThreadSanitizer, which sees a race in any order of the threads."""

    def __init__(
        self, request: EvaluationRequest, config: SupervisorConfig, bench: CallsUnder
    ) -> None:
        """`bench` is prepared with the workloads."""
        self._request, self._config, self._bench = request, config, bench

    def search(self, target: Target, times_ns: Sequence[tuple[Workload, float]]) -> str:
        """What came of it, in words for the result.

        times_ns: public workloads with the time of a call without the tool. Raises `FaultError` for
        a race. A tool that fails accuses nobody, as in an audit.
        """
        if target.abi is not Abi.C or target.library is None:
            return f"not checked: {TORCH_REASON}"
        if not starts_threads(target.library):
            return "none: it starts no threads"
        short = sorted((ns, w.name, w) for w, ns in times_ns if ns <= RACE_CALL_NS)
        if not short:
            return "not checked, because its calls take too long; an audit does check"
        looked: list[Ran] = []

        def run(target: Target, tool: Callable[[], Tool]) -> Sequence[Ran]:
            looked.extend(self._run(target, tool, [workload for _, _, workload in short]))
            return looked

        (check,) = CpuSanitizers(self._request, self._config, target, run).checks_of(THREADS)
        if check.state is AuditState.FAILED:
            reason = f"the result depends on which thread comes first: {check.reason}; {_HINT}"
            raise FaultError(Fault(Verdict.WRONG_RESULT, reason))
        if check.state is not AuditState.PASSED:
            return f"not known: {check.reason}"
        return f"none in {len(looked)} of {len(times_ns)} public workloads"

    def _run(
        self, target: Target, tool: Callable[[], Tool], workloads: Sequence[Workload]
    ) -> Iterator[Ran]:
        """A process for each workload, until one fails or the time is over."""
        began = time.monotonic()
        for workload in workloads:
            (ran,) = run_under(self._bench, target, [[workload]], tool)
            yield ran
            if ran.fault is not None or time.monotonic() - began > RACE_SEARCH_S:
                break
