"""Whatever somebody on the host kills or stops, a right kernel's author is not blamed for it."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.proc import descendants
from gpu_runner.supervisor.runner.pool import Oracles
from tests.protocol.evaluating import needs_jail, request

pytestmark = [pytest.mark.slow, needs_jail]

KERNEL = """
// %s
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  for (int again = 0; again < 100; ++again) {
    for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
    asm volatile("" ::: "memory");
  }
}
"""
"""Right, and slow enough that half of its measurement is spent in calls."""
ENDS_AS_IF_KILLED = """
#include <unistd.h>
extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int calls = 0;
  if (calls++ == %d) _exit(137);  // as a shell says that somebody was killed
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
"""
TASK = dataclasses.replace(find_task("vector_add"), baselines=())
MODES = (Mode.QUICK, Mode.TEST)
LATEST_S = 3.0  # about how long the oracle of such an evaluation lives
_fork = multiprocessing.get_context("fork")

Victim = Callable[[int, int], Sequence[int]]
"""Of the ids of an evaluation's process and of its oracle, whom of them to kill; none for none."""


def stat(pid: int) -> tuple[str, str]:
    """Name and state of a process."""
    with suppress(OSError, IndexError):
        head, _, tail = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
        return head.partition("(")[2], tail.split()[0]
    return "", "X"


def measured(evaluation: int) -> list[int]:
    """The processes of a jail with a runner in it: outermost, its first process, the kernel's."""
    for outer in descendants(evaluation):
        below = descendants(outer)
        if len(below) == 2 and stat(outer)[0] == "bwrap" and stat(below[-1])[0] == "library.so":
            return [outer, *below]
    return []


def of_oracle(place: int) -> Victim:
    return lambda _, oracle: [oracle, *descendants(oracle)][place:][:1]


def of_runner(place: int, states: str) -> Victim:
    def found(evaluation: int, _: int) -> Sequence[int]:
        tree = measured(evaluation)
        return tree[place:][:1] if tree and stat(tree[-1])[1] in states else []

    return found


def compiler(evaluation: int, _: int) -> Sequence[int]:
    return [pid for pid in descendants(evaluation) if stat(pid)[0] in ("cc1plus", "as", "ld")]


VICTIMS: dict[str, Victim] = {
    "oracle's jail, outer": of_oracle(0),
    "oracle's jail, inner": of_oracle(1),
    "oracle": of_oracle(2),
    "outer jail, stopped": of_runner(0, "T"),
    "inner jail, stopped": of_runner(1, "T"),
    "kernel's process, stopped": of_runner(2, "T"),
    "outer jail, in a call": of_runner(0, "R"),
    "inner jail, in a call": of_runner(1, "R"),
    "kernel's process, in a call": of_runner(2, "R"),
    "compiler": compiler,
}


def _evaluate(
    asked: EvaluationRequest, config: SupervisorConfig, oracles: Oracles, told: Connection
) -> None:
    told.send(evaluate(asked, config, oracles=oracles))
    os._exit(0)


def judged(
    config: SupervisorConfig, mode: Mode, source: str, disturb: Callable[[int, int], None]
) -> EvaluationResult:
    """The result of an evaluation as a slot makes it, in a fork, while it is disturbed."""
    asked = request(TASK, source, mode)
    ours, theirs = _fork.Pipe()
    with closing(Oracles()) as oracles:
        oracles.start_ahead(config)
        [oracle] = oracles.pids
        process = _fork.Process(target=_evaluate, args=(asked, config, oracles, theirs))
        process.start()
        disturb(process.pid or 0, oracle)
        assert ours.poll(120), "it hangs"
        result: EvaluationResult = ours.recv()
        process.join()
    return result


class Killer:
    """Kills one process of an evaluation at a moment drawn from a seed, if it is still there."""

    def __init__(self, victim: Victim, seed: int) -> None:
        self._victim, self._rng = victim, random.Random(seed)

    def __call__(self, evaluation: int, oracle: int) -> None:
        found = self.found(evaluation, oracle)  # it is there: from now on it is a matter of luck
        until = time.monotonic() + self._rng.uniform(0, self._rng.choice((0.1, LATEST_S)))
        while found is not None and time.monotonic() < until:
            time.sleep(0.001)
        if (victim := self.found(evaluation, oracle)) is not None:
            os.kill(victim, signal.SIGKILL)

    def found(self, evaluation: int, oracle: int) -> int | None:
        """Whom to kill, as soon as there is somebody; None once the evaluation is over."""
        while stat(evaluation)[1] not in "ZX":
            if there := self._victim(evaluation, oracle):
                return self._rng.choice(there)
        return None


@pytest.mark.sampled(10)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("victim", VICTIMS)
def test_whoever_is_killed_the_author_is_not_blamed(
    config: SupervisorConfig, victim: str, seed: int, mode: Mode
) -> None:
    name = f"{victim}, {seed}, {mode}"
    result = judged(config, mode, KERNEL % name, Killer(VICTIMS[victim], seed))
    assert result.verdict is Verdict.CORRECT or result.retryable, result.reason
    assert result.verdict in (Verdict.CORRECT, Verdict.SYSTEM_ERROR)


@pytest.mark.parametrize("after", [0, 7])
def test_a_kernel_that_ends_as_if_killed_is_blamed_the_second_time(
    config: SupervisorConfig, after: int
) -> None:
    result = judged(config, Mode.TEST, ENDS_AS_IF_KILLED % after, lambda *_: None)
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.reason.endswith("for the second time")
