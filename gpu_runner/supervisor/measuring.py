"""What happens on the device in one evaluation: first checks, baselines, processes, and times."""

from __future__ import annotations

import logging
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from gpu_runner.data.environment import AnchorTimes
from gpu_runner.data.evaluation import EvaluationRequest, Mismatch
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import FIRST_CALLS, NOISE_LIMIT, PLANS, RECALIBRATIONS, UNSTABLE_FROM
from gpu_runner.data.rounding import HIDDEN
from gpu_runner.data.task import Values, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Mode, Stage, Verdict
from gpu_runner.supervisor.audit.cpu import RaceSearch
from gpu_runner.supervisor.baselines import Baselines
from gpu_runner.supervisor.device.device_log import DeviceLog
from gpu_runner.supervisor.device.environment import library_versions
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.processors import team_size
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.empty_kernel import EmptyKernelCalibration
from gpu_runner.supervisor.measure.outside import UNSEEN, EmptyKernelTime
from gpu_runner.supervisor.measure.turns import Progress
from gpu_runner.supervisor.record import Record, wrong_on_other_values
from gpu_runner.supervisor.runner.faults import Fault, FaultError, RunnerUnfit
from gpu_runner.supervisor.runner.target import Target, Targets
from gpu_runner.supervisor.timeline import Timeline, calls_so_far
from gpu_runner.supervisor.tools.anchor import measure_anchor

logger = logging.getLogger(__name__)
_TEAMS = re.compile(r"omp[ _]|parallel_for|prange")  # in a source that may have teams of OpenMP
_CRASHES = (Verdict.RUNTIME_ERROR, Verdict.TIME_LIMIT)
_TEAM = (
    "OpenMP teams had {} threads on {} processors here: use omp_get_max_threads(), which counts "
    "the threads, not omp_get_num_procs()"
)


class Measuring:
    """The measurement of one target by a plan; what is found goes into the record."""

    def __init__(
        self,
        record: Record,
        timeline: Timeline,
        bench: Bench,
        targets: Targets,
        workloads: Sequence[Workload],
        drawn: Sequence[Workload] = (),
    ) -> None:
        """Measure nothing yet. The bench is prepared for these workloads, and for drawn shapes."""
        target, self._hidden_target = targets.public, targets.hidden
        self._record, self._timeline = record, timeline
        self._request, self._config = record.request, record.config
        self._bench, self._target = bench, target
        self._plan, self._workloads = PLANS[self._request.mode], workloads
        self._public = [workload for workload in workloads if not workload.hidden]
        self._timed = [workload for workload in workloads if workload.timed]
        self._checks_first = self._plan.first_calls or self._config.kind is DeviceKind.CPU
        self._drawn = list(drawn)
        self._log = DeviceLog(self._config)

    def run(self) -> Fault:
        """Measure everything; the returned fault may be no fault: CORRECT.

        Raises `FaultError` as soon as an output is wrong, or a process fails.
        """
        plan = self._plan
        if self._checks_first:
            self._first_calls()
        baselines = self._baselines()
        clock = OwnClock(self._request, self._config, self._bench, self._target, self._record)
        with self._timeline.stage(Stage.PREPARE):
            clock.calibrate(self._timed, plan)
        done = 0
        for upto in plan.looks():
            for process in range(done, upto):
                drawn = self._drawn if process == 0 and not self._checks_first else ()
                self._record.output = self._one_process(plan, f"process {process + 1}", drawn)
            done = upto
            if self._record.noise()[1] <= NOISE_LIMIT[self._config.kind]:
                break
        self._hidden_processes()
        self._record.say(blocks=tuple(self._log.blocks))
        self._carry(baselines)
        return self._judge_times(clock, done)

    def _judge_times(self, clock: OwnClock, processes: int) -> Fault:
        """What is said of the times, once the clock is sure."""
        is_scored = self._request.mode in (Mode.RANKED, Mode.AUDIT)
        if is_scored:
            with self._timeline.stage(Stage.PREPARE):
                clock.look_again(self._timed)
        if impossible := self._record.impossible():
            return Fault(Verdict.VIOLATION, impossible)
        name, noise = self._record.noise()
        if is_scored and noise > UNSTABLE_FROM:
            reason = (
                f"the time on {name!r} is only known to ±{noise * 100:.0f} % after {processes}"
                " processes: the device was noisy, or the kernel's own time varies"
            )
            return Fault(Verdict.UNSTABLE, reason)
        if is_scored and self._record.unlisted_noise() > UNSTABLE_FROM:
            reason = (
                f"its time on unlisted sizes isn't known to within ±{UNSTABLE_FROM * 100:.0f} %: "
                "the device was noisy, or the kernel's own time varies"
            )
            return Fault(Verdict.UNSTABLE, reason)
        self._record.look_at_times()
        return Fault(Verdict.CORRECT, "every verified output is within the tolerance")

    def _first_calls(self) -> None:
        """A few verified calls of listed workloads and drawn shapes, before anything is timed."""
        with self._timeline.stage(Stage.CHECK):
            first = FirstCalls(self._bench, self._record)
            first.make(self._target, self._public, self._drawn, self._progress(Stage.CHECK, ""))
        self._raise_mismatch()

    def _raise_mismatch(self) -> None:
        if self._record.mismatch is not None:
            raise FaultError(self._record.wrong_result(self._record.mismatch))

    def _baselines(self) -> Baselines:
        task, direction = self._request.task, self._request.solution.direction
        is_audit = self._request.mode is Mode.AUDIT
        baselines = Baselines(task, direction, self._config, anew=is_audit)
        if self._plan.baselines:
            with self._timeline.stage(Stage.BASELINES):
                if self._config.kind is DeviceKind.CUDA:  # a CPU's fastest calls need no correction
                    baselines.anchor_ns = measure_anchor(self._config)
                progress = self._progress(Stage.BASELINES, "")
                baselines.measure_missing(self._bench, self._timed, progress)
        return baselines

    def _carry(self, baselines: Baselines) -> None:
        """Bring remembered baselines to the speed that the anchor had around the measurement."""
        if self._plan.baselines and baselines.anchor_ns is not None:
            after = measure_anchor(self._config)
            times = AnchorTimes(before=baselines.anchor_ns, after=after)
            self._record.say(anchor_ns=times)
            baselines.anchor_ns = times.mean
        for workload in self._timed:
            known = baselines.known(workload, noisy=not self._plan.baselines)
            self._record.add_baselines(workload, known)
        if libraries := library_versions(self._request.task):
            self._record.say(libraries=libraries)
        if self._request.mode is Mode.RANKED:
            self._record.pending_baselines = baselines.pending(self._timed)

    def _hidden_processes(self) -> None:
        """Measure hidden workloads last, in processes of their own, and say little of them.

        No process that has seen one comes before a public output is taken, so that nothing which
        an author may see can tell of them.
        """
        unlisted = [workload for workload in self._workloads if workload.unlisted]
        checks = [workload for workload in self._workloads if not workload.timed]
        if not unlisted and not checks:
            return
        with self._telling_little():
            self._target = self._hidden_target()
        self._timeline.tell(Stage.MEASURE, "running", HIDDEN)
        plan, done = self._plan.for_unlisted(), 0
        for upto in plan.looks() if unlisted else ():
            for process in range(done, upto):
                self._hidden_process(plan, process + 1, unlisted)
            done = upto
            if self._record.unlisted_noise() <= NOISE_LIMIT[self._config.kind]:
                break
        if checks:
            self._hidden_process(self._plan.for_checks(), done + 1, checks)
        self._timeline.tell(Stage.MEASURE, "done", HIDDEN)

    def _hidden_process(self, plan: Plan, number: int, workloads: Sequence[Workload]) -> None:
        with self._telling_little():
            self._one_process(plan, f"{HIDDEN}, process {number}", workloads=workloads)

    @contextmanager
    def _telling_little(self) -> Iterator[None]:
        try:
            yield
        except FaultError as error:
            verdict = error.fault.verdict
            if verdict is Verdict.COMPILE_ERROR:  # it has loaded for the listed ones
                verdict = Verdict.RUNTIME_ERROR
            self._log_hidden(f"{verdict}, {error}")
            reason = "correct on the listed workloads, but not on a hidden one"
            raise FaultError(Fault(verdict, reason)) from None

    def _log_hidden(self, what: str) -> None:
        """Say what failed to who runs this host alone: it tells of what is hidden."""
        name = self._request.evaluation_id
        logger.info("evaluation %s failed on something hidden: %.300r", name, what)

    def _one_process(
        self,
        plan: Plan,
        which: str,
        drawn: Sequence[Workload] = (),
        *,
        workloads: Sequence[Workload] = (),
    ) -> str:
        """Measure and verify in one fresh process, on listed workloads unless there are others.

        Returns what it printed.
        """
        workloads, is_hidden = workloads or self._public, which.startswith(HIDDEN)
        with self._timeline.stage(Stage.MEASURE, which, told=not is_hidden):
            progress = _silent if is_hidden else self._progress(Stage.MEASURE, f"{which}: ")
            with self._log.block(which):
                measured = self._bench.run(self._target, [*workloads, *drawn], plan, progress)
        varied: dict[str, Mapping[Values, Mismatch]] = {}
        with self._timeline.stage(Stage.VERIFY, which, told=not is_hidden):
            for workload in workloads:
                collected = measured.workloads[workload.name]
                verified = self._bench.verify(workload, collected)
                self._record.add(workload, collected, verified)
                if verified.varied:
                    varied[workload.name] = verified.varied
            for shape in drawn:
                self._record.add_untimed(self._bench.verify(shape, measured.workloads[shape.name]))
        self._raise_mismatch()
        for name, found in varied.items():
            self._log_hidden(f"{name}, with other values: {found}")
            raise FaultError(wrong_on_other_values(name, found))
        return measured.output

    def _progress(self, stage: Stage, prefix: str) -> Progress:
        def tell(done: int, of: int, calls: int) -> None:
            self._timeline.progress(stage, prefix + calls_so_far(done, of, calls))

        return tell


def _silent(done: int, of: int, calls: int) -> None:
    """Tell nothing: how many calls there were, and when, is a kernel's to choose."""


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
        """Verify a few calls of each of these listed workloads and drawn shapes; look for races.

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
