"""The whole protocol for one evaluation: build, measure in fresh processes, verify, judge."""

from __future__ import annotations

import logging
import random
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.normal_form import form_of
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import LEAST_TEAM, PLANS
from gpu_runner.data.static import LEFT_TO_CALLS, compiles_at_calls, speaks_of_work
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Language, Mode, Stage, Verdict
from gpu_runner.supervisor.audit.audit import Auditor, fault_of, lists_kernels, suspicions_of
from gpu_runner.supervisor.audit.listed import Lister
from gpu_runner.supervisor.baselines import Baselines
from gpu_runner.supervisor.build.binary import static_suspicions
from gpu_runner.supervisor.build.build import (
    build_runner,
    build_shim,
    build_solution,
    build_support,
)
from gpu_runner.supervisor.build.module import ModuleRecipe, handed_over
from gpu_runner.supervisor.build.recipe import Built, Recipe
from gpu_runner.supervisor.device.device import DeviceError, device_name
from gpu_runner.supervisor.device.environment import environment
from gpu_runner.supervisor.device.lock import Courteous, exclusive
from gpu_runner.supervisor.device.toolchain import ToolchainError, python_packages
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import KilledFromOutside, shortage
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.device_memory import DeviceMemory
from gpu_runner.supervisor.measure.rehearsal import Rehearsal
from gpu_runner.supervisor.measure.staging import HostMemory
from gpu_runner.supervisor.measure.watch import Watch
from gpu_runner.supervisor.measuring import Measuring
from gpu_runner.supervisor.oracle.client import Oracle, OracleError, OutOfMemory, OutOfSharedMemory
from gpu_runner.supervisor.oracle.distributions import SupportedDistributions
from gpu_runner.supervisor.oracle.shapes import DrawnShapes
from gpu_runner.supervisor.record import Record
from gpu_runner.supervisor.runner.ahead import TorchProcesses
from gpu_runner.supervisor.runner.faults import Fault, FaultError, RunnerUnfit
from gpu_runner.supervisor.runner.loaded import foreign_suspicions, loaded
from gpu_runner.supervisor.runner.mapped import Witness
from gpu_runner.supervisor.runner.pool import Oracles, an_oracle
from gpu_runner.supervisor.runner.preemption import Manners
from gpu_runner.supervisor.runner.runner_process import our_libraries
from gpu_runner.supervisor.runner.target import Target, Targets
from gpu_runner.supervisor.timeline import Report, Timeline
from gpu_runner.supervisor.tools import health
from gpu_runner.supervisor.tools.profiling import Profiler
from gpu_runner.supervisor.work.told import is_of_libraries, is_told, unknown_share

logger = logging.getLogger(__name__)

PASSING = (KilledFromOutside, OutOfSharedMemory, RunnerUnfit, ToolchainError, jail.JailError)
"""What another attempt, or another host, may not meet."""

_OURS = (*PASSING, OracleError, DeviceError)
"""What may go wrong on our side with a message that a person can act on."""

POLITE_NICENESS = 15
"""Of the builds that no person waits for."""

TASK_FAILED = "the task's own code, or the process that runs it, failed; the log tells admins why"
"""The reason where there are hidden workloads: such words could give away sizes and values."""


def evaluate(
    request: EvaluationRequest,
    config: SupervisorConfig,
    report: Report = lambda stage, state, detail: None,
    oracles: Oracles | None = None,
) -> EvaluationResult:
    """Evaluate a solution. Never raises: our own failures end as SYSTEM_ERROR with a log.

    `oracles` may keep the oracle for a caller that evaluates more than once.
    """
    timeline, record = Timeline(report), Record(request, config)
    try:
        fault = _Evaluation(request, config, timeline, record, oracles).run()
    except FaultError as error:
        fault = error.fault
        record.output = record.output or error.output
    except _OURS as error:
        logger.warning("evaluation %s: %s", request.evaluation_id, error)
        fault = Fault(Verdict.SYSTEM_ERROR, str(error).splitlines()[0])
        record.log = str(error)
        record.retryable = isinstance(error, PASSING)
        if isinstance(error, ToolchainError):  # whoever comes next would fare no better
            with suppress(OSError):
                health.suspect(config, Verdict.RUNTIME_ERROR)
    except Exception as error:  # a defect of ours, and shown as one, unless the host is full
        logger.exception("evaluation %s failed", request.evaluation_id)
        lacking = shortage(error)
        fault = Fault(Verdict.SYSTEM_ERROR, lacking or f"internal error: {type(error).__name__}")
        record.log, record.retryable = traceback.format_exc(), bool(lacking)
    return record.result(fault, timeline.times())


def memory_of(
    oracle: Oracle, inputs: Arena, samples: Arena, rng: random.Random, config: SupervisorConfig
) -> HostMemory | DeviceMemory:
    """Where calls find their arguments: these arenas, or a GPU's own memory."""
    if config.kind is DeviceKind.CUDA:
        return DeviceMemory(oracle, rng, config)
    return HostMemory(oracle, inputs, samples, rng, build_support(config))


class _Evaluation:
    """One evaluation on its way through the stages."""

    def __init__(
        self,
        request: EvaluationRequest,
        config: SupervisorConfig,
        timeline: Timeline,
        record: Record,
        oracles: Oracles | None,
    ) -> None:
        self._request, self._oracles = request, oracles
        hurried = request.urgency.is_of_people
        self._config = config if hurried else replace(config, niceness=POLITE_NICENESS)
        self._timeline, self._record = timeline, record
        self._task, self._direction = request.task, request.solution.direction
        self._workloads: tuple[Workload, ...] = ()

    def run(self) -> Fault:
        """Run all stages. The returned fault may be no fault: CORRECT, or COMPILED."""
        self._check_host()
        self._record.environment = environment(self._config)
        if self._request.mode is Mode.COMPILE:
            self._compile()
            return Fault(Verdict.COMPILED, "it built; nothing was run or verified")
        plan = PLANS[self._request.mode]
        self._workloads = self._task.workloads_for(
            self._config.kind, self._direction, hidden=plan.hidden
        )
        if all(workload.hidden for workload in self._workloads):
            raise OracleError(f"the task has no listed workload for a {self._config.kind} device")
        self._record.begin(self._workloads)
        try:
            return self._measure(plan)
        except OutOfMemory:
            raise  # which tells of nothing that is hidden
        except OracleError as error:
            if any(workload.hidden for workload in self._workloads):
                raise OracleError(f"{TASK_FAILED}\n{error}") from error
            raise

    def _check_host(self) -> None:
        language, kind = self._request.solution.language, self._config.kind
        if kind not in language.device_kinds:
            raise DeviceError(f"{language} sources do not run on a {kind} device")
        if self._request.mode is not Mode.COMPILE:
            device_name(kind, self._config.index)  # or it is not there
        jail.require(allow_unjailed=self._config.allow_unjailed)

    def _measure(self, plan: Plan) -> Fault:
        # The oracle starts before the build, so that importing torch overlaps with it.
        # A generator that can be computed on would tell of seeds: poison, offsets and inputs are
        # drawn from it, too, and a submission sees them.
        rng = random.SystemRandom()
        with (
            closing(Arena("inputs")) as inputs,
            closing(Arena("samples")) as samples,
            an_oracle(self._oracles, self._config) as oracle,
            closing(self._torch_processes(plan)) as torch,
        ):
            target = self._target(self._compile())
            with (
                self._device() as manners,
                closing(memory_of(oracle, inputs, samples, rng, self._config)) as memory,
            ):
                bench = Bench(oracle, memory, samples, self._config, rng, manners)
                bench.use(torch)
                if target.python and not self._task.libraries:
                    bench.watch = Watch(our_libraries(self._config), self._config.kind)
                bench.must_beat_ns = self._request.must_beat_ns
                with self._timeline.stage(Stage.PREPARE):
                    shapes = DrawnShapes(self._task, self._direction, self._config, rng)
                    task = shapes.task if plan.shapes else self._task
                    self._record.say(oracle=oracle.load(task, inputs, samples))
                    drawn = shapes.some(oracle, plan.shapes) if plan.shapes else ()
                    values = SupportedDistributions(self._task, self._direction, self._config)
                    others = values.of(oracle, self._workloads, rng) if plan.varied else {}
                    bench.prepare([*self._workloads, *drawn], self._direction, others)
                self._record.know_sizes(bench)
                with closing(self._rehearsal(bench, target)) as rehearsal:
                    try:
                        return self._measured(bench, target, drawn, rehearsal)
                    except FaultError:
                        rehearsal.forget()
                        raise

    def _measured(
        self, bench: Bench, target: Target, drawn: Sequence[Workload], rehearsal: Rehearsal
    ) -> Fault:
        workloads = [workload for workload in self._workloads if not workload.hidden]
        target = self._rehearsed(rehearsal, target, [*workloads, *drawn])
        hidden = [workload for workload in self._workloads if workload.hidden]
        unseen = replace(target, witness=Witness())
        unlisted = cache(lambda: self._rehearsed(rehearsal, unseen, hidden, hidden=True))
        targets = Targets(target, unlisted)
        fault = Measuring(
            self._record, self._timeline, bench, targets, self._workloads, drawn
        ).run()
        self._say_what_ran(target, unlisted() if hidden else unseen)
        if fault.verdict is Verdict.CORRECT:
            self._tell_work(bench, targets)
        if bench.doubt:
            self._record.say(measured_again=bench.doubt)
        if self._request.mode is Mode.PROFILE:
            self._profile(bench, target, fault)
        if self._request.mode is Mode.AUDIT:
            return self._audit(bench, targets, fault)
        return fault

    def _say_what_ran(self, target: Target, hidden: Target) -> None:
        facts, solution = self._record.environment, self._request.solution
        self._record.loaded = loaded(solution, target, facts, python_packages())
        found = list(foreign_suspicions(target)) or list(foreign_suspicions(hidden, hidden=True))
        self._record.suspicions += found

    def _rehearsed(
        self,
        rehearsal: Rehearsal,
        target: Target,
        workloads: Sequence[Workload],
        *,
        hidden: bool = False,
    ) -> Target:
        """A target whose calls find compiled what a Python module compiles when it is called."""
        if not target.is_module or not self._compiles_at_calls():
            return target
        with self._timeline.stage(Stage.PREPARE, "compiling during the first calls"):
            return rehearsal.of(target, workloads, hidden=hidden)

    def _rehearsal(self, bench: Bench, target: Target) -> Rehearsal:
        anew = target.library is None or self._request.mode is Mode.AUDIT
        folder = None if anew or target.library is None else target.library.parent
        return Rehearsal(bench, self._config, self._task.digest(), folder)

    def _compiles_at_calls(self) -> bool:
        left = self._record.build is not None and LEFT_TO_CALLS in self._record.build.log
        return left or compiles_at_calls(self._request.solution.code)

    def _torch_processes(self, plan: Plan) -> TorchProcesses:
        waiting = None if self._oracles is None else self._oracles.torch
        torch = TorchProcesses(self._config, waiting)
        baselines = self._baseline_runners(plan) if torch.is_roomy() else 0
        torch.expect(self._torch_runners(plan) + baselines)
        if self._request.abi is Abi.TORCH:
            torch.expect(1 + self._compiles_at_calls(), LEAST_TEAM)
        return torch

    def _torch_runners(self, plan: Plan) -> int:
        """How many processes with PyTorch are going to be measured, at least."""
        if self._request.abi is not Abi.TORCH:
            return 0
        hidden = plan.for_unlisted().processes + 1 if plan.hidden else 0
        return int(plan.is_calibrated) + plan.processes + hidden

    def _baseline_runners(self, plan: Plan) -> int:
        """How many processes with PyTorch measure what no evaluation of the task has so far."""
        if not plan.baselines:
            return 0
        is_audit = self._request.mode is Mode.AUDIT
        baselines = Baselines(self._task, self._direction, self._config, anew=is_audit)
        return baselines.expected_processes(self._workloads)

    def _compile(self) -> Built:
        with self._timeline.stage(Stage.BUILD):
            built = build_solution(self._request, self._config, self._with_importer)
        self._record.build = built.report
        if built.library is None:
            raise FaultError(Fault(Verdict.COMPILE_ERROR, built.why_not(self._config)))
        for found in static_suspicions(self._request, built.library):
            (self._record.hints if speaks_of_work(found) else self._record.suspicions).append(found)
        return built

    def _with_importer(self, recipe: Recipe) -> Recipe:
        """The same recipe; a process that was started ahead imports a module, if there is one."""
        if self._oracles is None or not isinstance(recipe, ModuleRecipe):
            return recipe
        return replace(recipe, waiting=partial(self._oracles.torch.importer, self._config))

    def _target(self, built: Built) -> Target:
        abi, direction = self._request.abi, self._direction
        if abi is Abi.TORCH:
            solution = self._request.solution
            is_module = solution.language is Language.PYTHON
            source = handed_over(form_of(solution)) if is_module else ""
            return Target(abi, direction, library=built.library, source=source)
        signature = self._task.c_signature
        return Target(
            abi,
            direction,
            library=built.library,
            symbol=signature.symbol,
            shim=build_shim(signature, self._config),
            runner=build_runner(self._config),
        )

    @contextmanager
    def _device(self) -> Iterator[Manners]:
        with ExitStack() as held:
            with self._timeline.stage(Stage.DEVICE):
                turn = held.enter_context(exclusive(self._config, self._request.urgency))
            self._settle()
            try:
                yield Courteous(turn, self._stepping_aside, self._settle)
            except FaultError as error:  # before another evaluation gets the device
                health.suspect(self._config, error.fault.verdict)
                raise
            except Exception:  # whoever can provoke one could hide so that a device is broken
                health.suspect(self._config, Verdict.RUNTIME_ERROR)
                raise

    def _stepping_aside(self) -> AbstractContextManager[None]:
        return self._timeline.stage(Stage.DEVICE, "stepped aside for somebody who was waiting")

    def _settle(self) -> None:
        if reason := health.settle(self._config):
            raise RunnerUnfit(reason)

    def _tell_work(self, bench: Bench, targets: Targets) -> None:
        """Say who did the work, as far as it was seen.

        On a GPU, a profiler is asked where the source or the host's calls speak of a library, and
        of what counts for a board if it is Python, which can name a library in too many ways; an
        audit asks it anyway.
        """
        record, worked = self._record, bench.watch.worked if bench.watch else None
        if self._config.kind is DeviceKind.CPU:
            if worked is not None and is_told(worked):
                record.tell_work(worked)
            return
        calls_one = worked is not None and is_of_libraries(worked)
        is_python = self._request.solution.language is Language.PYTHON
        is_asked = record.hints or calls_one or (is_python and self._request.mode is Mode.RANKED)
        if self._request.mode is Mode.AUDIT or not is_asked:
            return
        with self._timeline.stage(Stage.CHECK, "which kernels run"):
            lister = Lister(self._request, bench, targets, record.build, record.results())
            listed = lister.listed()
        if listed is not None:
            record.suspicions += listed.suspicions
        if listed is not None and not self._task.libraries:
            record.tell_work(listed.worked)
        elif worked is not None and calls_one:
            record.suspicions.append(unknown_share(worked))

    def _profile(self, bench: Bench, target: Target, fault: Fault) -> None:
        """Profile a kernel whose outputs were right; a profiler that fails harms nobody."""
        if fault.verdict not in (Verdict.CORRECT, Verdict.UNSTABLE):
            return
        with self._timeline.stage(Stage.PROFILE):
            profiler = Profiler(self._request, self._config, bench, target)
            try:
                results = self._record.results()
                self._record.profile = profiler.profile(results, self._record.build)
                self._record.say_peaks()
            except Exception as error:  # the verdict stands: it needs no profile
                logger.exception("profile of %s failed", self._request.evaluation_id)
                self._record.say(profile_error=repr(error))

    def _audit(self, bench: Bench, targets: Targets, fault: Fault) -> Fault:
        """Look with tools at a kernel whose outputs were right; they may find that it is not."""
        if fault.verdict is not Verdict.CORRECT:
            return fault
        with self._timeline.stage(Stage.AUDIT):
            auditor = Auditor(
                self._request,
                self._config,
                bench,
                targets,
                self._record.build,
                lambda words: self._timeline.progress(Stage.AUDIT, words),
            )
            audit = auditor.audit(self._record.results(), self._record.loaded)
        self._record.audit = audit
        self._record.suspicions += suspicions_of(audit)
        if lists_kernels(audit):
            self._record.work_is_told = True
        return fault_of(audit) or fault
