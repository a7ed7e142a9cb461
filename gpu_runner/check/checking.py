"""Judges and times a script's kernels: the protocol of `evaluate`, with no site."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu_runner.check.script import Script
from gpu_runner.data.baselines import BaselineReport, BaselineRequest
from gpu_runner.data.codec import decode, encode
from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.scores import geometric_mean, with_baselines
from gpu_runner.data.solution import Solution
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Direction, Mode, Verdict
from gpu_runner.supervisor.baseline_job import measure_baselines
from gpu_runner.supervisor.device.device import generous_peak
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, write_atomically
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.runner.pool import Oracles
from gpu_runner.supervisor.soundness.soundness import survey
from gpu_runner.supervisor.tools.calibrate import calibrated

Say = Callable[[str], None]
OLD = ", old"
"""What follows the name of a kernel that others are compared with."""
_LEAST_WAYS = 3  # chosen: fewer ways than these to compute the same prove no bound
_STUDENT = {3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Two-sided 95 % quantiles of Student's distribution, by the number of values.

Source: any table of it; the degrees of freedom are one less.
"""
ROUNDS = tuple(_STUDENT)


@dataclass(frozen=True)
class Bound:
    """Whether honest ways to compute the reference pass its bound.

    ways: how many were tried. failed: those that the bound refuses. reason: why none was tried.
    """

    ways: int = 0
    failed: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether a kernel that breaks the bound is wrong."""
        return not self.failed and not self.reason and self.ways >= _LEAST_WAYS


@dataclass(frozen=True)
class Ratio:
    """The new kernel's speedup over the old one, with a 95 % interval over the rounds.

    old_ns and new_ns are the geometric means of the rounds' times, so that `value` is their ratio.
    """

    value: float
    low: float
    high: float
    rounds: int
    old_ns: float
    new_ns: float

    @classmethod
    def of(cls, old_ns: Sequence[float], new_ns: Sequence[float]) -> Ratio:
        """Of pairs that were measured one after the other; at least three."""
        logs = [math.log(old / new) for old, new in zip(old_ns, new_ns, strict=True)]
        mean, half = statistics.mean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
        half *= _STUDENT[len(logs)]
        old, new = statistics.geometric_mean(old_ns), statistics.geometric_mean(new_ns)
        ends = math.exp(mean - half), math.exp(mean + half)
        return cls(math.exp(mean), *ends, len(logs), old, new)


@dataclass(frozen=True)
class Checked:
    """What came of a script. limits: by kernel, the share of its time that memory takes at least.

    ratios: by kernel, of the new one to the old one, where scripts were compared; `results` then
    has both.
    """

    task: Task
    device: str
    bound: Bound
    baselines: BaselineReport
    results: Mapping[str, EvaluationResult]
    limits: Mapping[str, float] = field(default_factory=dict)
    ratios: Mapping[str, Ratio] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether all kernels are right, but for old ones, and no new one is slower."""
        wrong = (n for n, r in self.results.items() if r.verdict is not Verdict.CORRECT)
        slower = any(ratio.high < 1 for ratio in self.ratios.values())
        return not slower and all(name.endswith(OLD) for name in wrong)


def check(script: Script, config: SupervisorConfig, mode: Mode, say: Say) -> Checked:
    """Judge and time each kernel. Raises what `evaluate` tells as SYSTEM_ERROR, before it."""
    with _Checking(script.task, config, mode, say) as checking:
        results = {name: checking.result(name, each) for name, each in script.kernels.items()}
        return checking.checked(results)


def compare(
    old: Mapping[str, Solution], script: Script, config: SupervisorConfig, rounds: int, say: Say
) -> Checked:
    """Judge each kernel and the old one of its name by turns, both by the new reference.

    A kernel that has no old one is judged alone.
    """
    kernels = dict(script.kernels)
    kernels |= {f"{name}{OLD}": old[name] for name in script.kernels if name in old}
    with _Checking(script.task, config, Mode.QUICK, say) as checking:
        times: dict[str, list[float]] = {name: [] for name in kernels}
        results: dict[str, EvaluationResult] = {}
        for number in range(rounds):
            for name in list(kernels)[:: 1 if number % 2 else -1]:
                result = checking.result(f"{name}, round {number + 1} of {rounds}", kernels[name])
                results[name] = result
                if result.latency_ns is None:
                    del kernels[name]
                else:
                    times[name].append(result.latency_ns)
        pairs = {n: (times[f"{n}{OLD}"], times[n]) for n in kernels if f"{n}{OLD}" in kernels}
        ratios = {name: Ratio.of(*pair) for name, pair in pairs.items()}
        return replace(checking.checked(results), ratios=ratios)


class _Checking:
    """What all kernels of a script have in common. Use as a context manager."""

    def __init__(self, task: Task, config: SupervisorConfig, mode: Mode, say: Say) -> None:
        self._task, self._config, self._mode, self._say = task, config, mode, say
        self._oracles = Oracles()
        say("baselines (the first time takes longest, because they're compiled)")
        request = BaselineRequest(
            measurement_id="", task=task, direction=Direction.FORWARD, device=config.device
        )
        self._baselines = measure_baselines(request, config, lambda text: None)
        say("bound")
        self._bound = _bound(task, config)

    def __enter__(self) -> _Checking:
        return self

    def __exit__(self, *_: object) -> None:
        self._oracles.close()

    def result(self, name: str, solution: Solution) -> EvaluationResult:
        """A kernel's result, with all baselines."""
        self._say(name)
        request = EvaluationRequest(
            evaluation_id="check",
            task=self._task,
            solution=solution,
            mode=self._mode,
            device=self._config.device,
        )
        result = evaluate(request, self._config, oracles=self._oracles)
        anchor = result.environment.anchor_ns
        return with_baselines(result, self._baselines.at(anchor.mean if anchor else None))

    def checked(self, results: Mapping[str, EvaluationResult]) -> Checked:
        """All that came of the script."""
        bytes_per_s = _bandwidth(self._config)
        found = {name: _limit(result, bytes_per_s) for name, result in results.items()}
        limits = {name: limit for name, limit in found.items() if limit}
        return Checked(
            task=self._task,
            device=self._config.device,
            bound=self._bound,
            baselines=self._baselines,
            results=results,
            limits=limits,
        )


def _bandwidth(config: SupervisorConfig) -> float:
    """Of a device's memory, in bytes a second; 0 where nobody has said or measured it."""
    if config.kind is DeviceKind.CUDA:
        peak = generous_peak(config.kind, config.index)
        return peak.bytes_per_s if peak else 0.0
    measured = calibrated(config)
    return measured.peak().bytes_per_s if measured else 0.0


def _limit(result: EvaluationResult, bytes_per_s: float) -> float | None:
    """The share of a kernel's time in which its tensors pass once; None where that is unknown."""
    if not bytes_per_s:
        return None
    return geometric_mean(
        workload.tensor_bytes / bytes_per_s * 1e9 / workload.measurement.time_ns
        for workload in result.workloads
        if workload.measurement and workload.tensor_bytes and not workload.hidden
    )


def _bound(task: Task, config: SupervisorConfig) -> Bound:
    """Try the bound with families of honest kernels, once for each reference and device."""
    path = config.cached("check_bound", f"{task.digest()} {config.device}")
    if path.exists():
        return decode(Bound, read_json(path))
    try:
        report = survey(task, config, seeds=1, most_seeds=1)
    except OracleError as error:
        return Bound(reason=str(error).splitlines()[0])
    honest = report["honest"]
    assert isinstance(honest, list)
    failed = tuple(str(entry["name"]) for entry in honest if entry.get("reason"))
    found = Bound(ways=len(honest), failed=failed)
    write_atomically(path, encode(found))
    return found
