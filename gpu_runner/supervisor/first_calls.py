"""The calls that come first: verified, not timed, by teams that are large enough to race."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_runner.data.protocol import FIRST_CALLS
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.audit.races import RaceSearch
from gpu_runner.supervisor.host.processors import team_size
from gpu_runner.supervisor.measure.bench import Bench, Progress
from gpu_runner.supervisor.record import Record, wrong_on_other_values
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target


class FirstCalls:
    """Right first, then fast: whoever is wrong hears it before anything is timed."""

    def __init__(self, bench: Bench, record: Record) -> None:
        """`bench` is prepared with the workloads; `record` takes what is found."""
        self._bench, self._record = bench, record
        self._races = RaceSearch(record.request, record.config, bench)

    def make(
        self,
        target: Target,
        workloads: Sequence[Workload],
        drawn: Sequence[Workload],
        progress: Progress,
    ) -> None:
        """Verify a few calls of each of these public workloads and drawn shapes; look for races.

        The first wrong output goes into the record. Raises `FaultError` for all else.
        """
        every = [*workloads, *drawn]
        measured = self._bench.run(target, every, FIRST_CALLS, progress)
        self._record.output = measured.output
        kept: list[Fault] = []
        for workload in every:
            verified = self._bench.verify(workload, measured.workloads[workload.name])
            self._record.add_untimed(verified)
            if verified.varied:
                kept.append(wrong_on_other_values(workload.name, verified.varied))
        if self._record.config.kind is DeviceKind.CPU:
            self._record.environment["verified_with_threads"] = team_size(FIRST_CALLS.team)
            times_ns = [(w, min(measured.workloads[w.name].times_ns)) for w in workloads]
            self._record.environment["races"] = self._races.search(target, times_ns)
        if kept and self._record.mismatch is None:
            raise FaultError(kept[0])
