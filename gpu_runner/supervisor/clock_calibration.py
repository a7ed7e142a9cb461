"""When an evaluation calibrates the supervisor's own clock, and at which workloads that looks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import RECALIBRATIONS
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Mode
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.empty_kernel import EmptyKernelCalibration
from gpu_runner.supervisor.measure.outside import UNSEEN, EmptyKernelTime
from gpu_runner.supervisor.record import Record
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.runner.target import Target


class OwnClock:
    """The outside clock of one evaluation (`outside` says what it makes of a call)."""

    def __init__(
        self,
        request: EvaluationRequest,
        config: SupervisorConfig,
        bench: Bench,
        target: Target,
        record: Record,
    ) -> None:
        """Nothing is known yet."""
        self._mode, self._abi, self._kind = request.mode, request.abi, config.kind
        self._bench, self._record = bench, record
        self._times = EmptyKernelCalibration(
            request.task, request.solution.direction, config, target
        )

    def calibrate(self, workloads: Sequence[Workload], plan: Plan) -> None:
        """Learn what the clock itself adds, from a kernel that does nothing.

        `quick` looks at one workload of a GPU's, and at no torch extension: each of its workloads
        would have to be calibrated by a process of its own. It takes what is remembered, and does
        not calibrate again before a time is raised: on a CPU processor time must say more there.
        Raises `RunnerUnfit` where the empty kernel fails.
        """
        if plan.bursts == 0 or (self._abi is Abi.TORCH and not plan.is_calibrated):
            return
        if plan.is_calibrated:
            fresh = self._mode is Mode.AUDIT
            found = self._times.of(self._bench, workloads, fresh=fresh)
        else:
            known = self._times.known(workloads)
            found = known or self._times.of(self._bench, workloads, fresh=False)
            found = {
                name: replace(n, spread_ns=n.spread_ns + n.single_ns) for name, n in found.items()
            }
        if plan.burst_workloads and self._kind is DeviceKind.CUDA:
            names = random.SystemRandom().sample(sorted(found), plan.burst_workloads)
            found = {name: found[name] for name in names}
        self._know(found)

    def look_again(self, workloads: Sequence[Workload]) -> None:
        """Calibrate anew for those workloads whose claims the clock contradicts, or hardly sees.

        A bad moment of the host must neither raise a time nor let one pass: no claim is raised
        that a calibration has borne out. Raises `RunnerUnfit` where the clock stays blind: that is
        this host's fault.
        """
        for _ in range(RECALIBRATIONS):
            doubtful = self._record.raised() | self._record.blind()
            if not doubtful:
                return
            again = list(workloads)
            if self._abi is Abi.TORCH:  # else they share one line, and it is laid through several
                again = [workload for workload in workloads if workload.name in doubtful]
            found = self._times.of(self._bench, again, fresh=True)
            self._know({name: found[name] for name in doubtful})
        if self._record.blind():
            raise RunnerUnfit(UNSEEN)

    def _know(self, found: Mapping[str, EmptyKernelTime]) -> None:
        self._record.know_empty(found)
        self._bench.know_empty(found)
