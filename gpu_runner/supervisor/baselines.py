"""Measures a task's baselines once per task, workload, device and software, and remembers them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_runner.data.baselines import BaselineReport, carried
from gpu_runner.data.codec import decode, encode
from gpu_runner.data.evaluation import Measurement, Mismatch
from gpu_runner.data.protocol import BASELINE_PLAN, BASELINE_PROCESSES, NOISE_LIMIT
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction, Verdict
from gpu_runner.supervisor.device.environment import library_versions, stack
from gpu_runner.supervisor.device.statistics import ESTIMATORS, measure
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, write_atomically
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.turns import Progress
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.target import Target

QUICK = frozenset({"eager"})
"""Baselines that a submission's own evaluation measures. The others are compiled for every
workload, or call a library that first chooses how, and so they are measured apart.
"""

_AT_A_TIME = 4  # chosen: see `measure_slow`


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A baseline's time on one workload, or why there is none.

    anchor_ns: the anchor's time when it was measured; it carries the time to another day.
    """

    measurement: Measurement | None
    error: str = ""
    anchor_ns: float | None = None

    def carried(self, anchor_ns: float | None) -> Baseline:
        """The same baseline as it would be at the device's speed of now."""
        if self.measurement is None:
            return self
        now = carried(self.measurement, self.anchor_ns, anchor_ns)
        return replace(self, measurement=now, anchor_ns=anchor_ns or self.anchor_ns)


class Baselines:
    """The baselines of one task and direction on this host's device."""

    def __init__(
        self, task: Task, direction: Direction, config: SupervisorConfig, *, anew: bool = False
    ) -> None:
        """Look nothing up yet. `anew`: measure even what is remembered, as audits do."""
        self._task, self._direction, self._config = task, direction, config
        self._names = task.baselines_for(direction)
        self._estimator = ESTIMATORS[config.kind]
        versions = library_versions(task)
        of = f"{task.digest()} {stack(config)} {self._estimator!r} {versions or ''}"
        self.anchor_ns: float | None = None
        self._anew = anew
        self._unsure: dict[tuple[str, str], Baseline] = {}  # of this evaluation only
        self._folder = config.cached("baselines", of) / direction

    def known(self, workload: Workload, *, noisy: bool = False) -> dict[str, Baseline]:
        """What is remembered for a workload, by name, at the speed that `anchor_ns` shows.

        noisy: also what another evaluation has measured on a busy host, where nothing else is.
        """
        found = {}
        for name in self._names:
            paths = [self._path(workload, name), *([self._noisy(workload, name)] if noisy else [])]
            if (workload.name, name) in self._unsure:
                found[name] = self._unsure[workload.name, name].carried(self.anchor_ns)
            elif path := next((path for path in paths if path.exists()), None):
                found[name] = decode(Baseline, read_json(path)).carried(self.anchor_ns)
        return found

    def measure_missing(
        self, bench: Bench, workloads: Sequence[Workload], progress: Progress
    ) -> None:
        """Measure what is not remembered, under the same call protocol as a submission.

        Those that are slow to start are left to `measure_slow`.
        """
        for name in self._quick():
            if missing := self._missing(name, workloads):
                self._measure(bench, name, missing, progress)

    def expected_processes(self, workloads: Sequence[Workload]) -> int:
        """How many torch runners `measure_missing` is going to take."""
        missing = [name for name in self._quick() if self._missing(name, workloads)]
        return len(missing) * BASELINE_PROCESSES[self._config.kind]

    def measure_slow(self, bench: Bench, workloads: Sequence[Workload], progress: Progress) -> None:
        """Measure those that `measure_missing` leaves out, a few workloads at a time.

        So little is lost when somebody more urgent interrupts it.
        """
        for name in self.pending(workloads):
            missing = self._missing(name, workloads)
            for at in range(0, len(missing), _AT_A_TIME):
                self._measure(bench, name, missing[at : at + _AT_A_TIME], progress)

    def pending(self, workloads: Sequence[Workload]) -> tuple[str, ...]:
        """Names of the slow ones that are not known, and of those that may have failed by chance.

        It counts if this holds for any workload that is timed.
        """
        timed = [workload for workload in workloads if workload.timed]
        return tuple(
            name
            for name in self._names
            if (name not in QUICK and any(name not in self.known(w) for w in timed))
            or any(self._failed_by_chance(workload, name) for workload in timed)
        )

    def _failed_by_chance(self, workload: Workload, name: str) -> bool:
        unsure = self._unsure.get((workload.name, name))
        return unsure is not None and unsure.measurement is None

    def report(self, workloads: Sequence[Workload]) -> BaselineReport:
        """What is known of them all, and why a baseline is missing."""
        known = {workload.name: self.known(workload) for workload in workloads}
        return BaselineReport(
            task_digest=self._task.digest(),
            baselines={
                workload: {name: b.measurement for name, b in each.items() if b.measurement}
                for workload, each in known.items()
            },
            errors={
                f"{workload}: {name}": b.error
                for workload, each in known.items()
                for name, b in each.items()
                if b.error
            },
            pending=self.pending(workloads),
            anchor_ns=self.anchor_ns,
        )

    def _quick(self) -> list[str]:
        return [name for name in self._names if name in QUICK]

    def _missing(self, name: str, workloads: Sequence[Workload]) -> list[Workload]:
        known = [w for w in workloads if self._path(w, name).exists() and not self._anew]
        return [w for w in workloads if w.timed and w not in known]

    def _measure(
        self,
        bench: Bench,
        name: str,
        workloads: Sequence[Workload],
        progress: Progress,
        *,
        again: bool = True,
    ) -> None:
        """again: should something on this host kill a process of it, once."""
        target = Target(self._task.abi, self._direction, baseline=name)
        setup = {"task": encode(self._task)}
        times: dict[str, list[list[float]]] = {workload.name: [] for workload in workloads}
        wrong: dict[str, Mismatch | None] = {}
        try:
            for _ in range(BASELINE_PROCESSES[self._config.kind]):
                measured = bench.run(target, workloads, BASELINE_PLAN, progress, setup)
                for workload in workloads:
                    collected = measured.workloads[workload.name]
                    verified = bench.verify(workload, collected)
                    times[workload.name].append(collected.times_ns)
                    wrong[workload.name] = wrong.get(workload.name) or verified.mismatch
        except (FaultError, KilledFromOutside) as error:
            if again and isinstance(error, KilledFromOutside):
                self._measure(bench, name, workloads, progress, again=False)
                return
            self._failed(bench, name, workloads, progress, error)
            return
        rng = random.Random(0)  # noqa: S311 - resampling, no secret
        for workload in workloads:
            mismatch = wrong[workload.name]
            if mismatch is None:
                measurement = measure(times[workload.name], self._estimator, rng)
                result = Baseline(measurement=measurement, anchor_ns=self.anchor_ns)
            else:
                reason = f"wrong by the task's own tolerance: {mismatch.reason}"
                result = Baseline(measurement=None, error=reason)
            self._remember(workload, name, result)

    def _failed(
        self,
        bench: Bench,
        name: str,
        workloads: Sequence[Workload],
        progress: Progress,
        error: FaultError | KilledFromOutside,
    ) -> None:
        """Remember that a library can't do this here, perhaps for some of the workloads only.

        Anything else may have been this host's bad moment: the next evaluation tries again.
        """
        failed = Baseline(measurement=None, error=str(error))
        raised = isinstance(error, FaultError) and error.fault.verdict is Verdict.RUNTIME_ERROR
        if not (raised and name in self._task.library_baselines):
            self._unsure.update(((workload.name, name), failed) for workload in workloads)
        elif len(workloads) == 1:
            self._remember(workloads[0], name, failed)
        else:
            for workload in workloads:
                self._measure(bench, name, [workload], progress)

    def _remember(self, workload: Workload, name: str, baseline: Baseline) -> None:
        measured, limit = baseline.measurement, NOISE_LIMIT[self._config.kind]
        if self._anew or (measured and measured.relative_half_width > limit):
            before = self.known(workload).get(name)
            slow_ns = before.measurement.time_ns if before and before.measurement else 0.0
            if measured and measured.time_ns * (1 + limit) < slow_ns:
                self._path(workload, name).unlink(missing_ok=True)  # it was a bad moment
            self._unsure[workload.name, name] = baseline
            if measured and not self._anew:
                write_atomically(self._noisy(workload, name), encode(baseline))
            return
        self._unsure.pop((workload.name, name), None)
        write_atomically(self._path(workload, name), encode(baseline))
        self._noisy(workload, name).unlink(missing_ok=True)

    def _noisy(self, workload: Workload, name: str) -> Path:
        return self._path(workload, name).with_suffix(".noisy.json")

    def _path(self, workload: Workload, name: str) -> Path:
        return self._folder / hashlib.sha256(workload.name.encode()).hexdigest() / f"{name}.json"
