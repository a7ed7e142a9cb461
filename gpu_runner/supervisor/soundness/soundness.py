"""Is a task sound? Every wrong kernel that its reference yields must fail a ranked evaluation."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, replace
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.check import CheckRequest
from gpu_runner.data.queue import Urgency
from gpu_runner.data.soundness import MOST_MUTANT_SEEDS, MUTANT_SEEDS
from gpu_runner.data.task import Task, Workload
from gpu_runner.data.verdict import Direction, Verdict
from gpu_runner.supervisor.device.lock import Courteous, exclusive
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import Oracle, OracleError
from gpu_runner.supervisor.oracle.subject import of_call
from gpu_runner.supervisor.oracle.varied import vary
from gpu_runner.supervisor.runner.faults import RunnerUnfit
from gpu_runner.supervisor.soundness import filters
from gpu_runner.supervisor.soundness.filters import describe_filters
from gpu_runner.supervisor.soundness.outcomes import (
    EQUIVALENT,
    FAILED,
    SURVIVED,
    UNTRIED,
    FactsAnswer,
    Survey,
    Tried,
    sense,
)
from gpu_runner.supervisor.tools import health

MOST_NAMES = 4096
"""Of mutants, honest kernels, arguments and outputs together that an oracle may speak of."""
LONGEST_NAME = 512  # chosen: several times the longest name of a mutant

Progress = Callable[[str], None]
_ALWAYS_LISTED = ("reference", "baseline_fn")
"""Honest kernels that a reader of a report asks for by name."""


class SoundnessOracle(Oracle):
    """An oracle that is also asked for mutants, and for what filters need to know.

    The task's code, which runs there, can make up names: they are bounded, because all of them are
    kept until the report is written. Raises `OracleError` beyond.
    """

    def __init__(self, config: SupervisorConfig) -> None:
        super().__init__(config)
        self._names: set[str] = set()

    def __enter__(self) -> SoundnessOracle:
        return self

    def facts(
        self, workload: Workload, direction: Direction, seeds: Sequence[int]
    ) -> Mapping[str, object]:
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
            reason = f"gave more than {MOST_NAMES} names, or a name longer than {LONGEST_NAME}"
            raise OracleError(f"the task's code {reason} characters")


@contextmanager
def _on(workload: Workload, direction: Direction) -> Iterator[None]:
    """Have an error name the workload: a report is for those who may know them all."""
    try:
        yield
    except OracleError as error:
        raise type(error)(f"{direction.value} of {workload.name}: {error}") from error


def survey(
    task: Task,
    config: SupervisorConfig,
    *,
    seeds: int = MUTANT_SEEDS,
    most_seeds: int = MOST_MUTANT_SEEDS,
    progress: Progress = lambda text: None,
) -> dict[str, object]:
    """Try all mutants of a task on the device, and its filters; the report, ready for JSON.

    {"task", "digest", "device", "passed", "survivors", "mutants": [{"name", "direction", "state",
    "workload", "scaled"}], "honest": [{"name", "direction", "workload", "scaled", "reason"}],
    "filters": [see `filters.Finding`]}. A right honest kernel has no reason. Raises `OracleError`
    where the task's code fails, `JailError` where there is no jail.
    """
    jail.require(allow_unjailed=config.allow_unjailed)
    surveys: dict[Direction, Survey] = {}
    findings: list[dict[str, object]] = []
    with (
        closing(Arena("inputs")) as inputs,
        closing(Arena("samples")) as samples,
        SoundnessOracle(config) as oracle,
    ):
        oracle.load(task, inputs, samples)
        for direction in task.directions:
            workloads = _smallest_first(task, config, direction)
            varied = _varied(task, workloads, config, direction)
            calls = _Calls(oracle, direction, progress)
            surveys[direction] = _survey(calls, workloads, varied, (seeds, most_seeds))
            progress(f"{direction.value}: filters")
            findings += filters.find(task, direction, workloads, oracle.facts, config)
    return {**_report(task, config, surveys, findings), "filters": findings}


class _Calls:
    """Calls on which the mutants of one direction are tried; the same ones on every run."""

    def __init__(self, oracle: SoundnessOracle, direction: Direction, progress: Progress) -> None:
        self.found = Survey()
        self._oracle, self._direction, self._progress = oracle, direction, progress
        self._own, self._others = random.Random(0), random.Random(2)  # noqa: S311  no secret

    def draw(self, workload: Workload, settled: Sequence[str]) -> None:
        """One with the workload's own values."""
        seed = self._own.getrandbits(62)
        self.found.add(workload, self._try(workload, seed, settled))

    def vary(self, chosen: Iterable[Sequence[Workload]]) -> None:
        """One of each of these workloads, whose values are not their own."""
        for workload in itertools.chain(*chosen):
            seed = self._others.getrandbits(62)
            self.found.add_other(workload, self._try(workload, seed, self.found.decided()))

    def _try(self, workload: Workload, seed: int, settled: Sequence[str]) -> Tried:
        self._progress(_state_of(self._direction, workload, settled))
        return self._oracle.mutants(workload, self._direction, seed, settled)


def _survey(
    calls: _Calls,
    workloads: Sequence[Workload],
    varied: Sequence[Sequence[Workload]],
    limits: tuple[int, int],
) -> Survey:
    """Each workload `limits[0]` times with its own values, and the other values of ranked calls.

    Those come on the smallest and the largest listed workload, for honest kernels must be right on
    them. Where a mutant has passed all calls so far, such as a largest element that only far larger
    scores need, they come on each listed workload, and then all comes again, up to `limits[1]`
    times: other values settle most of those mutants at once, and luck takes many calls.
    """
    found, (fewest, most) = calls.found, limits
    for workload in workloads:
        for _ in range(fewest):
            calls.draw(workload, found.settled(fewest, keep_same=True))
    calls.vary(varied[:: max(1, len(varied) - 1)])
    for _ in range(most - fewest):
        if found.open():
            calls.vary(varied)
        for workload in workloads:
            if not found.open():
                return found
            calls.draw(workload, found.settled(fewest, keep_same=False))
    return found


def _varied(
    task: Task, workloads: Sequence[Workload], config: SupervisorConfig, direction: Direction
) -> list[list[Workload]]:
    """Each listed workload with the other values that its calls may have."""
    return [
        [
            replace(workload, values=values)
            for values in task.other_values(workload, config.kind, direction)
        ]
        for workload in workloads
        if not workload.hidden
    ]


def _state_of(direction: Direction, workload: Workload, settled: Sequence[str]) -> str:
    return f"{direction.value} {workload.name}: {len(settled)} wrong kernels decided"


def _smallest_first(task: Task, config: SupervisorConfig, direction: Direction) -> list[Workload]:
    """All workloads of a ranked evaluation: most mutants fail on the cheapest already."""
    workloads = task.workloads_for(config.kind, direction, hidden=True)
    if not any(not workload.hidden for workload in workloads):
        raise OracleError(f"the task has no listed workload for a {config.kind} device")

    def size(workload: Workload) -> float:
        cost = task.cost(workload, direction)
        return cost.bytes + cost.flops if cost else 0.0

    return sorted(workloads, key=size)


def _report(
    task: Task,
    config: SupervisorConfig,
    surveys: Mapping[Direction, Survey],
    findings: Sequence[Mapping[str, object]],
) -> dict[str, object]:
    mutants = [
        outcome.document(name, direction, found.workloads)
        for direction, found in surveys.items()
        for name, outcome in found.outcomes.items()
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


def check_task(
    request: CheckRequest, config: SupervisorConfig, progress: Progress
) -> dict[str, Any]:
    """The report of `soundness.survey`, made while nothing else uses the device.

    Whoever is more urgent gets it between two steps. A task that is to be varied is varied first;
    the report is then about the task with the `workloads` that it names.

    Raises `OracleError` where the task's code fails; `DeviceError`, `JailError` and `RunnerUnfit`
    where the host does.
    """
    progress(f"waits for {config.device}")

    def settle() -> None:
        if reason := health.settle(config):
            raise RunnerUnfit(reason)

    with exclusive(config, Urgency.RUNS) as turn:
        settle()
        manners = Courteous(turn, nullcontext, settle)

        def tell(text: str) -> None:
            if manners.is_wanted():
                progress("stepped aside for more urgent work")
                manners.step_aside()
            progress(text)

        try:
            if not request.vary:
                return survey(request.task, config, progress=tell)
            tell("runs the file with other sizes")
            task = vary(request.task, config).task
            report = survey(task, config, progress=tell)
            return {**report, "workloads": codec.encode(task.workloads)}
        except Exception:  # before somebody else gets the device
            health.suspect(config, Verdict.RUNTIME_ERROR)
            raise


def brief(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report of `soundness.survey` with counts in the place of what is as it should be.

    It still lists wrong kernels that didn't fail, and filters that didn't pass. It also lists
    honest kernels that are off, the reference, the task's own baseline, and the worst honest kernel
    of each direction. `unlisted` counts the others by direction: {"failed": {workload: wrong
    kernels}, "passed": filters, "right": honest kernels}.
    """
    directions = dict.fromkeys(entry["direction"] for entry in report["mutants"])
    counts: dict[str, dict[str, Any]] = {
        direction: {"failed": {}, "passed": 0, "right": 0} for direction in directions
    }
    worst = {
        direction: max(
            (entry for entry in report["honest"] if entry["direction"] == direction),
            key=lambda entry: float(entry["scaled"]),
            default=None,
        )
        for direction in directions
    }
    lists: dict[str, list[Any]] = {"mutants": [], "honest": [], "filters": []}
    for entry in report["mutants"]:
        failed, workload = counts[entry["direction"]]["failed"], entry["workload"]
        if entry["state"] == FAILED:
            failed[workload] = failed.get(workload, 0) + 1
        else:
            lists["mutants"].append(entry)
    for entry in report["honest"]:
        listed = entry["name"] in _ALWAYS_LISTED or entry is worst[entry["direction"]]
        if listed or entry.get("reason"):
            lists["honest"].append(entry)
        else:
            counts[entry["direction"]]["right"] += 1
    for entry in report["filters"]:
        if entry["passed"]:
            counts[entry["direction"]]["passed"] += 1
        else:
            lists["filters"].append(entry)
    return {**report, **lists, "unlisted": counts}


def one_entry_a_line(report: Mapping[str, object]) -> str:
    """The report as JSON in few lines, so that a change of one entry is a change of one line."""
    return (
        "{\n" + ",\n".join(f' "{key}": {_lines(value)}' for key, value in report.items()) + "\n}\n"
    )


def _lines(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in value) + "\n ]"
    return json.dumps(value)
