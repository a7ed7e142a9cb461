"""Evaluates a kernel of the red team and decides: stopped, missed, accused or fine."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from enum import StrEnum

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.integrity import Check
from gpu_runner.data.protocol import MARGINS
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.outside import UNSEEN
from gpu_runner.supervisor.runner.pool import Oracles
from tests.adversarial.kernels import Kernel, Stop

ATTEMPTS = 5
"""A busy host may make a measurement UNSTABLE, which proves nothing in either direction."""
PAUSE_S = 3.0
"""Before another attempt, longer each time: what disturbs a host comes in bursts."""

BLIND = 0.05
"""Error of the outside clock beyond its margin, as a part of the time, that tells of a host that is
too busy to judge."""

UNCONFIRMED = "unconfirmed"
"""What stops a lie about a time where the result says that the clock could not confirm it."""


class Outcome(StrEnum):
    """What became of a kernel."""

    STOPPED = "stopped"  # hostile, and stopped as its file says
    MISSED = "MISSED"  # hostile, and not stopped, or by something else
    FINE = "fine"  # honest, CORRECT, without suspicion, and hardly raised
    ACCUSED = "ACCUSED"  # honest, and anything else
    UNJUDGED = "unjudged"  # the host was too busy for any of these to be said


@dataclass(frozen=True)
class Judgement:
    """An outcome, what happened in a sentence, and what stopped the kernel, if anything did."""

    outcome: Outcome
    happened: str
    stopped_by: str

    @property
    def good(self) -> bool:
        """Whether the red team has nothing to complain about."""
        return self.outcome in (Outcome.STOPPED, Outcome.FINE)


def run(
    kernel: Kernel, config: SupervisorConfig, oracles: Oracles | None = None
) -> tuple[EvaluationResult, Judgement]:
    """Evaluate and judge; again where the host was too noisy to say anything."""
    for attempt in range(ATTEMPTS):
        time.sleep(attempt * PAUSE_S)
        result = evaluate(request(kernel, config), config, oracles=oracles)
        judgement = judge(kernel, result)
        if judgement.good or not _host_was_busy(kernel, result):
            return result, judgement
    return result, replace(judgement, outcome=Outcome.UNJUDGED)


def _host_was_busy(kernel: Kernel, result: EvaluationResult) -> bool:
    if result.verdict is Verdict.SYSTEM_ERROR:
        return result.reason == UNSEEN
    margin = MARGINS[kernel.kind, kernel.abi].relative
    return result.verdict is Verdict.UNSTABLE or blindness(result, margin) > BLIND


def blindness(result: EvaluationResult, margin: float = 0.0) -> float:
    """Largest error of the outside clock in a workload, as a part of its claimed time.

    `margin` is the part of the bound that belongs to every error, and is left out.
    """
    return max(
        (
            (workload.outside.error_ns - margin * workload.outside.bound_ns)
            / workload.measurement.time_ns
            for workload in result.workloads
            if workload.outside is not None and workload.measurement is not None
        ),
        default=0.0,
    )


def request(kernel: Kernel, config: SupervisorConfig) -> EvaluationRequest:
    """The request that evaluates a kernel."""
    return EvaluationRequest(
        evaluation_id=kernel.name,
        task=kernel.task,
        solution=kernel.solution(),
        mode=kernel.mode,
        device=config.device,
    )


def judge(kernel: Kernel, result: EvaluationResult) -> Judgement:
    """Compare a result with what the kernel's file says."""
    happened = _happened(result)
    if kernel.honest:
        fine = result.verdict is Verdict.CORRECT and not result.suspicions
        raised = _raised(result)
        if raised > kernel.raised_at_most:
            happened = f"{happened}; its time is raised by {raised - 1:.0%}"
        fine = fine and raised <= kernel.raised_at_most
        return Judgement(Outcome.FINE if fine else Outcome.ACCUSED, happened, "")
    gained = _gained(kernel, result)
    if gained:
        return Judgement(Outcome.MISSED, f"{happened}; {gained}", "")
    for stop in kernel.stops:
        if _stopped(stop, result):
            return Judgement(Outcome.STOPPED, happened, str(stop))
    lies = any(stop.raised or stop.check is Check.CLOCK for stop in kernel.stops)
    if lies and any(hint.check is Check.CLOCK for hint in result.hints):
        return Judgement(Outcome.STOPPED, happened, UNCONFIRMED)
    return Judgement(Outcome.MISSED, happened, "")


def _raised(result: EvaluationResult) -> float:
    """How many times its claim a time has become at most, on listed workloads."""
    return max(
        (
            workload.measurement.time_ns / workload.claimed_ns
            for workload in result.workloads
            if workload.measurement and workload.claimed_ns and not workload.hidden
        ),
        default=1.0,
    )


def _stopped(stop: Stop, result: EvaluationResult) -> bool:
    if stop.verdict is not None:
        words = stop.words.lower()
        return result.verdict is stop.verdict and words in _words(result).lower()
    if stop.check is not None:
        return any(suspicion.check is stop.check for suspicion in result.suspicions)
    if stop.raised:
        return any(workload.claimed_ns is not None for workload in result.workloads)
    return result.verdict in (Verdict.CORRECT, Verdict.UNSTABLE)  # without a time nothing is won


def _gained(kernel: Kernel, result: EvaluationResult) -> str:
    """What a kernel got that it must not get; empty if nothing."""
    lines = result.output.splitlines()
    for words in kernel.must_not_print:
        found = [line for line in lines if words in line]
        if found:
            return f"it says: {found[0][:120]}"
    if result.latency_ns is not None and result.latency_ns < kernel.at_least_ns:
        return f"{result.latency_ns:.0f} ns are less than {kernel.at_least_ns:.0f} ns"
    return _gained_on_baselines(kernel, result)


def _gained_on_baselines(kernel: Kernel, result: EvaluationResult) -> str:
    if not kernel.task.baselines or result.verdict is not Verdict.CORRECT:
        return ""
    speedups = [workload.speedups.get("best", math.inf) for workload in result.workloads]
    most = max(speedups, default=math.inf)  # none where no baseline was measured
    over = most > kernel.at_most_speedup
    return f"a speedup of {most:.2f} is more than {kernel.at_most_speedup:g}" if over else ""


def _words(result: EvaluationResult) -> str:
    build = result.build.log if result.build is not None else ""
    return f"{result.reason} {result.mismatch} {build}"


def _happened(result: EvaluationResult) -> str:
    text = f"{result.verdict}: {result.reason}"
    if result.verdict is Verdict.CORRECT:
        text = f"CORRECT, {result.latency_ns or 0:.0f} ns"
        if blindness(result) > BLIND:
            text += f", the outside clock's error is {blindness(result):.0%}"
    if result.verdict is Verdict.SYSTEM_ERROR:
        text += f" [{result.log[-300:]}]"
    checks = sorted({str(suspicion.check) for suspicion in result.suspicions})
    return text + (f" (quarantined: {', '.join(checks)})" if checks else "")
