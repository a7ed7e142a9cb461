"""Is a task sound? Every wrong kernel that its reference yields must fail a ranked evaluation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction, Mode
from gpu_runner.supervisor import filters, jail
from gpu_runner.supervisor.arena import Arena
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.filters import describe_filters
from gpu_runner.supervisor.oracle import Oracle, OracleError, of_call
from gpu_runner.supervisor.plan import PLANS
from gpu_runner.supervisor.soundness_answers import FactsAnswer, Tried, sense
from gpu_runner.supervisor.varied import MOST_OWN_ERROR

SEEDS = 3
"""Calls on which every mutant is tried on a workload, at least."""
MOST_SEEDS = 12
"""Calls on which one is tried whose fate depends on luck."""
LUCK = 1e-3
"""A mutant fails if it would pass a ranked evaluation with less than this probability."""
MOST_NAMES = 4096
"""Of mutants, honest kernels, arguments and outputs together that an oracle may speak of."""
LONGEST_NAME = 512

Progress = Callable[[str], None]
FAILED, SURVIVED, EQUIVALENT = "failed", "survived", "equivalent"
UNTRIED = "untried"
"""State of a mutant that is the reference where it was tried, and could not be tried everywhere."""


class SoundnessOracle(Oracle):
    """An oracle that is also asked for mutants, and for what filters need to know.

    The task's code, which runs there, can make up names: they are bounded, because all of them are
    kept until the report is written. Raises `OracleError` beyond.
    """

    def __init__(self, config: SupervisorConfig) -> None:
        """No name is known yet."""
        super().__init__(config)
        self._names: set[str] = set()

    def __enter__(self) -> SoundnessOracle:
        """Return itself."""
        return self

    def facts(
        self, workload: Workload, direction: Direction, seeds: Sequence[int]
    ) -> Mapping[str, Any]:
        """Numbers of a workload from calls of these seeds; see `engine.filters`."""
        call = of_call(workload, direction, seeds[0])
        with _on(workload, direction):
            answer = self._ask(op="filters", **call, seeds=list(seeds))
            with sense():
                facts = FactsAnswer.read(answer)
        self._keep([*facts.outputs, *facts.arguments, *facts.uncounted])
        return asdict(facts)

    def mutants(
        self, workload: Workload, direction: Direction, seed: int, settled: Sequence[str]
    ) -> Tried:
        """Try the task's mutants, but those that are settled, on one call."""
        call = of_call(workload, direction, seed)
        with _on(workload, direction):
            answer = self._ask(op="mutants", **call, settled=list(settled))
            with sense():
                tried = Tried.read(answer)
        self._keep([*tried.honest, *(name for name, _, _ in tried.mutants)])
        return tried

    def _keep(self, names: Iterable[str]) -> None:
        self._names.update(names)
        if len(self._names) > MOST_NAMES or max(map(len, self._names), default=0) > LONGEST_NAME:
            reason = f"gave more than {MOST_NAMES} names, or one of more than {LONGEST_NAME}"
            raise OracleError(f"the task's code {reason} characters")


@contextmanager
def _on(workload: Workload, direction: Direction) -> Iterator[None]:
    """Have an error name the workload: a report is for those who may know them all."""
    try:
        yield
    except OracleError as error:
        raise OracleError(f"{direction.value} of {workload.name}: {error}") from error


@dataclass
class Trials:
    """What became of a mutant on one workload."""

    verified: int  # calls of the workload that a ranked evaluation verifies at least
    failures: int = 0
    calls: int = 0
    largest: float = 0.0

    def chance(self) -> float:
        """Estimated probability of passing the workload; careful where few calls were seen."""
        return float((1 - self.failures / (self.calls + 1)) ** self.verified)


@dataclass
class Fate:
    """What became of a mutant in one direction of a task."""

    workloads: dict[str, Trials] = field(default_factory=dict)
    same: bool = True  # wherever it was tried, it was the reference itself

    def add(self, workload: str, verified: int, state: str, scaled: float) -> None:
        """Add the outcome of one call: failed, passed or same."""
        trials = self.workloads.setdefault(workload, Trials(verified))
        trials.calls += 1
        trials.failures += state == "failed"
        trials.largest = max(trials.largest, scaled)
        self.same = self.same and state == "same"

    def state(self) -> str:
        """failed, survived or equivalent, by what is known now."""
        if self.same:
            return EQUIVALENT
        return FAILED if math.prod(t.chance() for t in self.workloads.values()) < LUCK else SURVIVED

    def settled(self, seeds: int) -> bool:
        """Whether it fails, and has been tried on `seeds` calls of one workload."""
        tried = max((t.calls for t in self.workloads.values()), default=0)
        return tried >= seeds and self.state() == FAILED

    def document(
        self, name: str, direction: Direction, everywhere: Collection[str]
    ) -> dict[str, Any]:
        """The mutant's entry in a report: the workload on which it failed most surely.

        Of a change that fits the shapes of some workloads alone, such as a transposition left out
        of one by one matrices, nothing is known: `everywhere` are the names of all workloads.
        """
        state = self.state()
        if state == EQUIVALENT and not self.workloads.keys() >= set(everywhere):
            state = UNTRIED
        items = sorted(self.workloads.items(), key=lambda item: item[1].chance())
        workload, trials = items[0]
        return {
            "name": name,
            "direction": direction.value,
            "state": state,
            "workload": workload,
            "scaled": float(f"{trials.largest:.3g}"),
        }


@dataclass(frozen=True)
class Honest:
    """An honest kernel on the workload on which it is worst; `reason` is empty if it is right."""

    workload: str
    error: float
    reason: str

    def badness(self) -> tuple[bool, float]:
        """Wrong before right, then by error: an output may be wrong as a whole alone."""
        return bool(self.reason), self.error


@dataclass
class _Survey:
    """One direction of a task."""

    fates: dict[str, Fate] = field(default_factory=dict)
    honest: dict[str, Honest] = field(default_factory=dict)
    workloads: set[str] = field(default_factory=set)

    def add(self, workload: str, answer: Tried) -> None:
        self.workloads.add(workload)
        verified = _verified_calls(answer.output_bytes)
        for name, (error, reason) in answer.honest.items():
            found = Honest(workload, error, reason)
            self.honest[name] = max(self.honest.get(name, found), found, key=Honest.badness)
        for name, state, scaled in answer.mutants:
            self.fates.setdefault(name, Fate()).add(workload, verified, state, scaled)

    def open(self) -> bool:
        return any(fate.state() == SURVIVED for fate in self.fates.values())

    def settled(self, seeds: int, *, keep_same: bool) -> list[str]:
        return [
            name
            for name, fate in self.fates.items()
            if fate.settled(seeds) or (not keep_same and fate.same)
        ]


def survey(
    task: Task,
    config: SupervisorConfig,
    *,
    seeds: int = SEEDS,
    most_seeds: int = MOST_SEEDS,
    progress: Progress = lambda text: None,
) -> dict[str, Any]:
    """Try all mutants of a task on the device, and its filters; the report, ready for JSON.

    {"task", "digest", "device", "passed", "survivors", "mutants": [{"name", "direction", "state",
    "workload", "scaled"}], "honest": [{"name", "direction", "workload", "scaled", "reason"}],
    "filters": [see `filters.Finding`]}. A right honest kernel has no reason. Raises `OracleError`
    where the task's code fails, `JailError` where there is no jail.
    """
    reason = "" if config.allow_unjailed else jail.probe()
    if reason:
        raise jail.JailError(f"no jail on this host, so nothing is run: {reason}")
    surveys: dict[Direction, _Survey] = {}
    findings: list[dict[str, Any]] = []
    with (
        closing(Arena("inputs")) as inputs,
        closing(Arena("taken")) as taken,
        SoundnessOracle(config) as oracle,
    ):
        oracle.load(task, inputs, taken)
        for direction in task.directions:
            workloads = _smallest_first(task, config, direction)
            limits = (seeds, most_seeds)
            surveys[direction] = _survey(oracle, workloads, direction, limits, progress)
            varied = _varied(task, workloads, config, direction)
            _survey_others(surveys[direction], oracle, varied, direction)
            progress(f"{direction.value}: filters")
            findings += filters.find(task, direction, workloads, oracle.facts, config)
    return {**_report(task, config, surveys, findings), "filters": findings}


def _survey(
    oracle: SoundnessOracle,
    workloads: list[Workload],
    direction: Direction,
    seeds: tuple[int, int],
    progress: Progress,
) -> _Survey:
    found, rng = _Survey(), random.Random(0)  # noqa: S311  the same report on every run
    fewest, most = seeds
    for workload in workloads:
        for _ in range(fewest):
            settled = found.settled(fewest, keep_same=True)
            progress(_state_of(direction, workload, settled))
            seed = rng.getrandbits(62)
            found.add(workload.name, oracle.mutants(workload, direction, seed, settled))
    for _ in range(most - fewest):
        for workload in workloads:
            if not found.open():
                return found
            settled = found.settled(fewest, keep_same=False)
            progress(_state_of(direction, workload, settled))
            seed = rng.getrandbits(62)
            found.add(workload.name, oracle.mutants(workload, direction, seed, settled))
    return found


def _varied(
    task: Task, workloads: Sequence[Workload], config: SupervisorConfig, direction: Direction
) -> list[Workload]:
    """The smallest and the largest public workload with the other values that calls may have."""
    public = [workload for workload in workloads if not workload.hidden]
    return [
        replace(workload, values=values)
        for workload in public[:: max(1, len(public) - 1)]
        for values in task.other_values(workload, config.kind, direction)
    ]


def _survey_others(
    found: _Survey, oracle: SoundnessOracle, varied: Sequence[Workload], direction: Direction
) -> None:
    """One call of each that a ranked evaluation may make: honest kernels must be right on it."""
    rng = random.Random(2)  # noqa: S311  the same report on every run
    for workload in varied:
        answer = oracle.mutants(workload, direction, rng.getrandbits(62), list(found.fates))
        if answer.honest["reference"][0] > MOST_OWN_ERROR:
            continue
        where = f"with {workload.values} values: "
        for name, (error, reason) in answer.honest.items():
            worst = Honest(workload.name, error, reason and where + reason)
            found.honest[name] = max(found.honest.get(name, worst), worst, key=Honest.badness)


def _state_of(direction: Direction, workload: Workload, settled: Sequence[str]) -> str:
    return f"{direction.value} {workload.name}: {len(settled)} wrong kernels settled"


def _smallest_first(task: Task, config: SupervisorConfig, direction: Direction) -> list[Workload]:
    """All workloads of a ranked evaluation: most mutants fail on the cheapest already."""
    workloads = task.workloads_for(config.kind, direction, hidden=True)
    if not any(not workload.hidden for workload in workloads):
        raise OracleError(f"the task has no public workload for a {config.kind} device")

    def size(workload: Workload) -> float:
        cost = task.cost(workload, direction)
        return cost.bytes + cost.flops if cost else 0.0

    return sorted(workloads, key=size)


def _verified_calls(output_bytes: int) -> int:
    """How many calls of a workload a ranked evaluation verifies at least."""
    plan = PLANS[Mode.RANKED]
    return plan.processes * min(plan.min_calls, plan.taken_calls(output_bytes))


def _report(
    task: Task,
    config: SupervisorConfig,
    surveys: Mapping[Direction, _Survey],
    findings: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    mutants = [
        fate.document(name, direction, found.workloads)
        for direction, found in surveys.items()
        for name, fate in found.fates.items()
    ]
    honest = [
        {
            "name": name,
            "direction": direction.value,
            "workload": worst.workload,
            "scaled": float(f"{worst.error:.3g}"),
            **({"reason": worst.reason} if worst.reason else {}),
        }
        for direction, found in surveys.items()
        for name, worst in found.honest.items()
    ]
    survivors = [f"{m['direction']}: {m['name']}" for m in mutants if m["state"] == SURVIVED]
    right = not any(found.honest["reference"].reason for found in surveys.values())
    right = right and all(finding["passed"] is not False for finding in findings)
    return {
        "task": task.name,
        "digest": task.digest(),
        "device": config.device,
        "passed": not survivors and right and bool(mutants),
        "survivors": survivors,
        "mutants": mutants,
        "honest": honest,
    }


def describe_soundness(report: Mapping[str, Any]) -> str:
    """The report as a table for a person."""
    rows = [*_rows(report["mutants"]), *_rows(report["honest"])]
    wide = max((len(row[0]) for row in rows), default=0)
    lines = [f"  {row[0]:<{wide}}  {row[1]:<10}  {row[2]}" for row in rows]
    count = len(report["mutants"])
    left = len(report["survivors"])
    verdict = "sound" if report["passed"] else "NOT SOUND"
    lines += describe_filters(report["filters"])
    flagged = sum(finding["passed"] is False for finding in report["filters"])
    lines.append(
        f"{report['task']}: {verdict}; {left} of {count} mutants survived, "
        f"{flagged} of {len(report['filters'])} filters flagged it"
    )
    return "\n".join(lines)


def _rows(entries: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    rows = []
    for entry in entries:
        shown = entry.get("state") or ("OFF" if entry.get("reason") else "right")
        where = (
            "" if shown in (EQUIVALENT, UNTRIED) else f"{entry['workload']} ({entry['scaled']:.3g})"
        )
        where += f": {entry['reason']}" if entry.get("reason") else ""
        name = f"{entry['direction']}: {entry['name']}"
        rows.append((name, shown.upper() if shown == SURVIVED else shown, where))
    return rows
