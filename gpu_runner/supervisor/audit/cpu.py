"""Runs a CPU submission, built again with the C++ sanitizers: audits, and looks for races."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.flags import is_level
from gpu_runner.data.integrity import AuditCheck, AuditState
from gpu_runner.data.protocol import RACE_CALL_NS, RACE_SEARCH_S
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Verdict
from gpu_runner.supervisor.audit.required import starts_threads
from gpu_runner.supervisor.audit.sanitizer_report import (
    Finding,
    leftover_findings,
    memory_findings,
    race_findings,
    undefined_findings,
)
from gpu_runner.supervisor.audit.under_tool import (
    CallsUnder,
    Ran,
    Tool,
    WrappedRun,
    check_of,
    inconclusive,
    run_under,
    skipped,
    suspicious,
)
from gpu_runner.supervisor.build.build import build_solution, build_trusted, native_files
from gpu_runner.supervisor.build.passes import own_code
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device.toolchain import ToolchainError
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import Jail
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Report

REPORT_LIMIT_BYTES = 1 << 20  # chosen: hundreds of findings
TORCH_REASON = "only for the c ABI: Python and torch don't run under this sanitizer"

MODULE_REASON = "only for compiled sources: no sanitizer checks a Python module"

_DEBUGGABLE = ("-O1", "-g", "-fno-omit-frame-pointer")
_FATAL = "color=never:halt_on_error=1:exitcode=77"
_PARALLEL = re.compile(rb"\0((?:GOMP|omp)_[a-z]\w*)(?=\0)")
_FOLLOWED = re.compile(  # by native/gomp_order.h, or without any meaning for the order of threads
    r"GOMP_(?:parallel|barrier|loop|sections|single|critical|atomic)\w*|omp_\w+"
)
_FENCE = re.compile(r"\bomp\s+flush\b|__sync_synchronize|_mm_[lms]fence")
"""Fences of which the compiler does not warn. Whoever only names one gets no verified place."""
_NOT_FOLLOWED = re.compile(
    r"GOMP_\w*(?:ordered|doacross|task|scantemp|cancel)\w*|omp_\w*nest_lock|omp_test_lock"
)
_HINT = "is a reduction, an atomic or a barrier missing?"


@dataclass(frozen=True)
class Build:
    """One way to build the runner and the submission again. `checks` share its processes."""

    runner_flags: tuple[str, ...]
    flags: tuple[str, ...]
    environment: Mapping[str, str]
    checks: tuple[str, ...]


MEMORY = Build(
    runner_flags=("-fsanitize=address",),
    flags=("-fsanitize=address,undefined",),
    environment={
        "ASAN_OPTIONS": f"{_FATAL}:detect_leaks=0:handle_segv=2:handle_sigbus=2:handle_sigfpe=2"
        ":handle_sigill=2:alloc_dealloc_mismatch=0:new_delete_type_mismatch=0"
        ":allocator_may_return_null=1:quarantine_size_mb=64:print_legend=0",
        "UBSAN_OPTIONS": "color=never:halt_on_error=0:print_stacktrace=0",
    },
    checks=("address", "undefined", "leftovers"),
)
UNDEFINED = Build(
    runner_flags=(),
    # Those that break a rule, without those that would be in every line of torch's headers.
    flags=("-fsanitize=bounds,integer-divide-by-zero,return,unreachable,vla-bound,bool",),
    environment={"UBSAN_OPTIONS": MEMORY.environment["UBSAN_OPTIONS"]},
    checks=("undefined",),
)
"""All that fits a torch extension: the other sanitizers must be the first library of a process."""

THREADS = Build(
    runner_flags=("-fsanitize=thread",),
    flags=("-fsanitize=thread",),
    environment={
        "TSAN_OPTIONS": f"{_FATAL}:ignore_noninstrumented_modules=1:detect_deadlocks=0"
        ":handle_segv=2:report_signal_unsafe=0:report_thread_leaks=0:report_mutex_bugs=0"
        ":atexit_sleep_ms=0"
    },
    checks=("threads",),
)


class Sanitized(Report):
    """Gives a process its sanitizer's options, and its standard error a descriptor of its own.

    Use as a context manager. What the process prints to standard output never comes between.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` holds the options."""
        super().__init__(REPORT_LIMIT_BYTES)
        self._environment = environment

    def command(self, program: Sequence[str]) -> list[str]:
        """`program` at fixed addresses where the kernel allows it: shadow memory must fit."""
        fixed = 'setarch -R true 2>/dev/null && exec setarch -R "$0" "$@"'
        script = f'exec 2>&{self.descriptor}; {fixed}; exec "$0" "$@"'
        return ["/bin/bash", "-c", script, *program]

    def jail(self, jail: Jail) -> Jail:
        """The same jail with the sanitizer's options."""
        environment = {**jail.environment, **self._environment}
        return replace(jail, environment=environment, profiled=True)


class CpuSanitizers:
    """The checks of a CPU's audit, each in fresh processes."""

    def __init__(
        self, request: EvaluationRequest, config: SupervisorConfig, target: Target, run: WrappedRun
    ) -> None:
        """`run` makes a few calls under a wrapper, on each of the audit's workloads."""
        self._request, self._config = request, config
        self._target, self._run = target, run

    def checks(self, tell: Callable[[str], None]) -> Iterable[AuditCheck]:
        """Every check, in order; `tell` hears which one comes now."""
        native = self._target.abi is Abi.C
        if self._target.is_module:
            yield from (skipped(n, MODULE_REASON) for n in ("address", "undefined", "threads"))
            return
        for kind in (MEMORY, THREADS) if native else (UNDEFINED,):
            tell(" and ".join(kind.checks))
            began = time.monotonic()
            found = self.checks_of(kind)
            share = (time.monotonic() - began) / len(found)
            yield from (replace(check, duration_s=share) for check in found)
        if not native:
            yield from (skipped(name, TORCH_REASON) for name in ("address", "threads"))

    def checks_of(self, kind: Build) -> list[AuditCheck]:
        """The checks that share one build."""
        try:
            runner = build_sanitized_runner(kind, self._config) if kind.runner_flags else None
        except ToolchainError as error:
            reason = f"g++ cannot build with {kind.flags[0]} on this host"
            return [skipped(name, reason, report=str(error)) for name in kind.checks]
        variant = functools.partial(sanitized_recipe, kind)
        built = build_solution(self._request, self._config, variant)
        if built.timed_out or built.memory_exceeded:
            reason = f"the compiler needs more time or memory with {kind.flags[0]}"
            return [inconclusive(name, reason) for name in kind.checks]
        if built.library is None:
            reason = f"it doesn't build with {kind.flags[0]}, but builds without it"
            return [suspicious(name, reason, built.report.log) for name in kind.checks]
        measured = self._target.library
        if kind.runner_flags and measured and own_code(built.library) != own_code(measured):
            reason = f"its macros produce different code with {kind.flags[0]}"
            return [suspicious(name, reason) for name in kind.checks]
        if kind is THREADS:
            source, log = self._request.solution.whole, built.report.log
            if reason := not_followed(built.library, log, source):
                return [skipped("threads", reason)]
        target = replace(self._target, library=built.library, runner=runner)
        return self._look(kind, target)

    def _look(self, kind: Build, target: Target) -> list[AuditCheck]:
        task = self._request.task
        native = task.abi is Abi.C
        names = [p.name for p in task.c_signature.parameters] if native else None
        outcome = self._run(target, lambda: Sanitized(kind.environment))
        files = tuple(self._request.solution.texts)
        checks = [
            check_of(name, outcome, functools.partial(findings, name, names, files))
            for name in kind.checks
        ]
        failed = next((c.name for c in checks if c.state is AuditState.FAILED), "")
        if not failed:
            return checks
        ended = f"its process ended because of what {failed!r} found"  # or would have
        return [
            skipped(check.name, ended) if check.state is AuditState.SUSPICIOUS else check
            for check in checks
        ]


def findings(
    check: str, names: Sequence[str] | None, files: Sequence[str], report: str
) -> list[Finding]:
    """What `check` makes of a report; `names` are the signature's parameters, in the c ABI.

    files: names of the submission's.
    """
    match check:
        case "address":
            return memory_findings(report, names or [], files)
        case "undefined":
            return undefined_findings(report, source_only=names is None, files=files)
        case "leftovers":
            return leftover_findings(report)
    return race_findings(report, files)


def build_sanitized_runner(kind: Build, config: SupervisorConfig) -> Path:
    """The c-ABI runner with a sanitizer's runtime. Raises `ToolchainError` where there is none."""
    flags = ("-std=c++17", *_DEBUGGABLE, *kind.runner_flags, "-DKBENCH_SANITIZED", "-fopenmp")
    linked = ("-rdynamic", "-Wl,--no-as-needed", "-lgomp", "-ldl")
    recipe = Recipe(native_files(), "runner.cpp", DeviceKind.CPU, (*flags, *linked))
    return build_trusted(recipe, config)


def build_race_finder(config: SupervisorConfig) -> Path:
    """The one that every evaluation of a kernel with threads needs."""
    return build_sanitized_runner(THREADS, config)


def sanitized_recipe(kind: Build, recipe: Recipe) -> Recipe:
    """How a submission is compiled for a sanitizer: the same, but for the optimisation."""
    kept = ["-ffast-math"] if "-Ofast" in recipe.flags else []  # which it implies
    kept += [flag for flag in recipe.flags if not is_level(flag)]
    added = _DEBUGGABLE if kind.runner_flags else _DEBUGGABLE[:1]  # it names places by itself
    return replace(recipe, flags=(*added, *kind.flags, *kept))


def not_followed(library: Path, log: str, source: str) -> str:
    """Why races cannot be told from order in this library; empty if they can."""
    warned = "atomic_thread_fence" in log and "-fsanitize=thread" in log
    if warned or _FENCE.search(source):
        return "it orders its threads with fences, which ThreadSanitizer doesn't follow"
    used = {match.decode() for match in _PARALLEL.findall(library.read_bytes())}
    strange = [n for n in sorted(used) if _NOT_FOLLOWED.fullmatch(n) or not _FOLLOWED.fullmatch(n)]
    return f"this sanitizer doesn't follow how {strange[0]} orders threads" if strange else ""


class RaceSearch:
    """Makes calls under ThreadSanitizer, which sees a race in any order of the threads."""

    def __init__(
        self, request: EvaluationRequest, config: SupervisorConfig, bench: CallsUnder
    ) -> None:
        """`bench` is prepared with the workloads."""
        self._request, self._config, self._bench = request, config, bench

    def search(self, target: Target, times_ns: Sequence[tuple[Workload, float]]) -> str:
        """What came of it, in words for the result.

        times_ns: listed workloads with the time of a call without the tool. Raises `FaultError` for
        a race. A tool that fails accuses nobody, as in an audit.
        """
        if target.abi is not Abi.C or target.library is None:
            return f"not checked: {TORCH_REASON}"
        if not starts_threads(target.library):
            return "none: it starts no threads"
        short = sorted((ns, w.name, w) for w, ns in times_ns if ns <= RACE_CALL_NS)
        if not short:
            return "not checked, because its calls take too long; an audit does check for races"
        looked: list[Ran] = []

        def run(target: Target, tool: Callable[[], Tool]) -> Sequence[Ran]:
            looked.extend(self._run(target, tool, [workload for _, _, workload in short]))
            return looked

        (check,) = CpuSanitizers(self._request, self._config, target, run).checks_of(THREADS)
        if check.state is AuditState.FAILED:
            reason = f"the result depends on which thread comes first: {check.reason}; {_HINT}"
            raise FaultError(Fault(Verdict.WRONG_RESULT, reason))
        if check.state is not AuditState.PASSED:
            return f"unknown ({check.reason})"
        return f"none in {len(looked)} of {len(times_ns)} listed workloads"

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
