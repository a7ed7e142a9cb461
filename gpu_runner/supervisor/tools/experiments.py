"""Finds why a kernel on a CPU is slow: a likely remedy is tried, and timed beside the kernel.

A cause is named only if the change that removes it makes calls clearly faster. Outputs of such a
library are not verified, and nothing of it is judged.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpu_runner.data.evaluation import EvaluationRequest, WorkloadResult
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.plan import Plan
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Language
from gpu_runner.supervisor.build.build import build_solution
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.build.vectorization import is_by_hand
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.target import Target

logger = logging.getLogger(__name__)

CLEAR = 1.25
"""Times as fast from which a change is no noise. Source: three times the noise between two quick
evaluations on a CPU, 8 % (`runs_app.core.work.noise`)."""

_PLAN = Plan(processes=1, min_calls=5, max_calls=40, budget_s=0.3)
_OF_THE_JAIL = 1  # its first process, which stands still
_ROUNDS = 3  # of both, by turns: others who use the host slow down both
_LONGEST_NS = 0.5e9  # a longer call is not tried: six processes would take half a minute

_FLUSH = "kbench_flush.h"
_FLUSHING = """#if defined(__x86_64__)
__attribute__((constructor)) static void kbench_flush_denormals() {
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}
#elif defined(__aarch64__)
__attribute__((constructor)) static void kbench_flush_denormals() {
  unsigned long control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | (1ul << 24)));
}
#endif
"""
_REORDERED = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")
_FAST_MATH = "-ffast-math"
_FAST = re.compile(r"-O?fast(?:-math)?")


@dataclass(frozen=True)
class Experiment:
    """A change to how a kernel is built, and what it says of the kernel if that helps."""

    cause: str
    change: str
    remedy: str
    variant: Callable[[Recipe], Recipe]


def _flushed(recipe: Recipe) -> Recipe:
    files = {**recipe.files, _FLUSH: _FLUSHING}
    return replace(recipe, files=files, flags=(*recipe.flags, "-include", _FLUSH), is_read=False)


def _reordered(recipe: Recipe) -> Recipe:
    return replace(recipe, flags=(*recipe.flags, *_REORDERED), is_read=False)


DENORMALS = Experiment(
    "denormal numbers",
    "when they are flushed to zero",
    "avoid values below 1.2e-38 (clamp the arguments of exp); or flush them in each thread with"
    " _mm_setcsr(_mm_getcsr() | 0x8040); or request -ffast-math",
    _flushed,
)
SCALAR_REDUCTION = Experiment(
    "a scalar reduction, which combines one element after another in source order",
    "when g++ may reorder it into vectors",
    f"begin the source with `// flags: {' '.join(_REORDERED)}`, or keep several partial results",
    _reordered,
)
STRICT_MATH = Experiment(
    "strict math, which keeps functions such as exp from working on vectors",
    "with -ffast-math",
    "begin the source with `// flags: -ffast-math` if no value is NaN or infinite; or write"
    " such a function for vectors",
    lambda recipe: replace(recipe, flags=(*recipe.flags, _FAST_MATH), is_read=False),
)


class Laboratory:
    """Tries what would make a measured kernel faster."""

    def __init__(
        self, request: EvaluationRequest, config: SupervisorConfig, bench: Bench, target: Target
    ) -> None:
        """`bench` is prepared, and the device held."""
        self._request, self._config = request, config
        self._bench, self._target = bench, target

    def causes(self, workload: Workload, latency_ns: float) -> Iterator[str]:
        """What makes calls on a workload slow, each with its figure and what to do about it."""
        solution = self._request.solution
        if solution.language is not Language.CPP or latency_ns > _LONGEST_NS:
            return
        if any(_FAST.fullmatch(flag) for flag in solution.flags):
            return  # it flushes and reorders already
        tried = [DENORMALS]
        if not is_by_hand(solution.whole):
            tried += [SCALAR_REDUCTION, STRICT_MATH]
        gained = 1.0
        for experiment in tried:
            try:
                own, changed = self._times(workload, experiment)
            except (FaultError, KilledFromOutside) as error:
                logger.info("an experiment on %s: %s", self._request.evaluation_id, error)
                continue
            # The last one does what the others do, too.
            least = CLEAR * (gained if experiment is STRICT_MATH else 1.0)
            if own >= least * changed:
                gained = max(gained, own / changed)
                yield (
                    f"{experiment.cause}: {experiment.change}, a call takes"
                    f" {duration_text(changed)} instead of {duration_text(own)}"
                    f" ({own / changed:.3g}× as fast). Remedy: {experiment.remedy}"
                )

    def _times(self, workload: Workload, experiment: Experiment) -> tuple[float, float]:
        """The fastest call of the kernel and of its variant, which came by turns."""
        built = build_solution(self._request, self._config, experiment.variant)
        if built.library is None:
            return 0.0, 1.0
        both = (self._target, replace(self._target, library=built.library))
        found: tuple[list[float], list[float]] = ([], [])
        for _ in range(_ROUNDS):
            for target, times in zip(both, found, strict=True):
                measured = self._bench.run(target, [workload], _PLAN, lambda done, of, calls: None)
                times.extend(measured.workloads[workload.name].counted_ns)
        return min(found[0]), min(found[1])


def thread_cause(results: Sequence[WorkloadResult], processors: int) -> str:
    """What the number of a jailed kernel's threads says, on so many processors; else nothing."""
    most = max((run.threads for each in results for run in each.processes), default=0)
    threads = most - _OF_THE_JAIL
    if threads == 1 < processors:
        return (
            f"one thread: the kernel leaves {processors - 1} of {processors} processors idle."
            " Remedy: `#pragma omp parallel for` on its outer loop"
        )
    if processors == 1 < threads:
        return (
            f"{threads} threads share the one processor that is measured. Remedy: one thread, and"
            " vectors instead"
        )
    return ""
