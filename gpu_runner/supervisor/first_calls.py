"""The calls that come first: verified, not timed, by teams that are large enough to race."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from gpu_runner.data.protocol import FIRST_CALLS
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.audit.races import RaceSearch
from gpu_runner.supervisor.host.processors import team_size
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.turns import Progress
from gpu_runner.supervisor.record import Record, wrong_on_other_values
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target

_TEAMS = re.compile(r"omp[ _]|parallel_for|prange")  # in a source that may have teams of OpenMP
_CRASHES = (Verdict.RUNTIME_ERROR, Verdict.TIME_LIMIT)
_TEAM = (
    "OpenMP teams had {} threads on {} processors here: omp_get_max_threads() counts the threads, "
    "omp_get_num_procs() does not"
)


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
        with self._naming_teams():
            measured = self._bench.run(target, every, FIRST_CALLS, progress)
        self._record.output = measured.output
        kept: list[Fault] = []
        for workload in every:
            verified = self._bench.verify(workload, measured.workloads[workload.name])
            self._record.add_untimed(verified)
            if verified.varied:
                kept.append(wrong_on_other_values(workload.name, verified.varied))
        if self._record.config.kind is DeviceKind.CPU:
            times_ns = [(w, min(measured.workloads[w.name].times_ns)) for w in workloads]
            team = team_size(FIRST_CALLS.team)
            self._record.say(verified_with_threads=team)
            self._record.say(races=self._races.search(target, times_ns))
        if kept and self._record.mismatch is None:
            raise FaultError(kept[0])

    @contextmanager
    def _naming_teams(self) -> Iterator[None]:
        """Say of a crash that teams had more threads than there are processors, if they had."""
        try:
            yield
        except FaultError as error:
            request, on_cpu = self._record.request, self._record.config.kind is DeviceKind.CPU
            crashed = on_cpu and error.fault.verdict in _CRASHES
            if crashed and _TEAMS.search(request.solution.whole):
                how = _TEAM.format(team_size(FIRST_CALLS.team), len(os.sched_getaffinity(0)))
                error.fault = replace(error.fault, reason=f"{error.fault.reason}; {how}")
            raise
