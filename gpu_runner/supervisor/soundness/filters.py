"""A task's filters: is there something to compute, does every input matter, is the work counted?

After robust-kbench's procedure (arXiv 2509.14279), whose thresholds are absolute numbers; here the
task's own bound decides what is small, still or without influence.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpu_runner.data.evaluation import JUDGED_FLOOR_NS, SLOW_BASELINE
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.soundness import BYTES_RATIO, FILTER_SEEDS, FILTER_SHARE, FLOPS_RATIO
from gpu_runner.data.task import Cost, Task, Workload
from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.device.floor import floor_ns
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.tools.peaks import measured_or_theoretical

Facts = Callable[[Workload, Direction, Sequence[int]], Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a filter found in one direction; `passed` is None where it cannot be said."""

    name: str
    direction: str
    workload: str
    value: float | None
    limit: str
    passed: bool | None
    text: str


def find(
    task: Task,
    direction: Direction,
    workloads: Sequence[Workload],
    facts: Facts,
    config: SupervisorConfig,
) -> list[dict[str, object]]:
    """All findings of a direction, as JSON values.

    `workloads` are those of the device, the smallest first. Outputs, work and baseline are looked
    at on the largest public one; an argument has to matter on any.
    """
    rng = random.Random(1)  # noqa: S311  the same report on every run
    public = next(workload for workload in reversed(workloads) if not workload.hidden)
    seen = facts(public, direction, [rng.getrandbits(62) for _ in range(FILTER_SEEDS)])
    context = _Context(task, direction, public)
    found = [*_outputs(context, seen), *_work(context, seen), _baseline(context, seen, config)]
    matters = {name: (public, bool(wrong)) for name, wrong in seen["arguments"].items()}
    least = next(workload for workload in workloads if not workload.hidden)
    kinds = {_kind(public)}
    for workload in (least, *(w for w in workloads if w is not least)):
        new = workload is least or _kind(workload) not in kinds
        if not new and all(wrong for _, wrong in matters.values()):
            continue
        kinds.add(_kind(workload))
        other = facts(workload, direction, [rng.getrandbits(62) for _ in range(2)])
        for name, wrong in other["arguments"].items():
            if name not in matters or (wrong and not matters[name][1]):
                matters[name] = (workload, bool(wrong))
    found += [_argument(context, name, *entry) for name, entry in matters.items()]
    return [asdict(finding) for finding in found]


def _kind(workload: Workload) -> frozenset[tuple[str, str]]:
    """What decides which arguments a workload has: flags, words, and which sizes there are."""
    return frozenset(
        (name, repr(value) if isinstance(value, bool | str | None) else type(value).__name__)
        for name, value in workload.parameters.items()
    )


@dataclass(frozen=True)
class _Context:
    """Where a finding was made."""

    task: Task
    direction: Direction
    workload: Workload

    def finding(
        self,
        name: str,
        value: float | None,
        limit: str,
        passed: bool | None,  # noqa: FBT001
        text: str,
    ) -> Finding:
        rounded = None if value is None else float(f"{value:.4g}")
        return Finding(
            name=name,
            direction=self.direction.value,
            workload=self.workload.name,
            value=rounded,
            limit=limit,
            passed=passed,
            text=text,
        )

    def unknown(self, name: str, limits: tuple[float, float], why: str) -> Finding:
        return self.finding(name, None, _between(limits), None, why)

    def ratio(self, name: str, said: float, have: float, limits: tuple[float, float]) -> Finding:
        what = name.rpartition(" ")[2]
        text = f"the formula has {said:.4g} {what}, a call of the reference {have:.4g}"
        if not have:
            return self.finding(name, None, _between(limits), not said, text)
        good = limits[0] <= said / have <= limits[1]
        return self.finding(name, said / have, _between(limits), good, text)

    def share(self, name: str, value: float, text: str) -> Finding:
        limit = f"at most {FILTER_SHARE:g}"
        return self.finding(name, value, limit, value <= FILTER_SHARE, f"{value:.1%} of {text}")


def _between(limits: tuple[float, float]) -> str:
    return f"{limits[0]:g} to {limits[1]:g}"


def _outputs(context: _Context, seen: Mapping[str, Any]) -> Iterator[Finding]:
    for name, output in seen["outputs"].items():
        text = f"the elements of {name} could be zero"
        yield context.share(f"output range: {name}", output["zeros"], text)
        text = f"the elements of {name} could be those of other inputs"
        yield context.share(f"output deviation: {name}", output["other_draw"], text)
        for axis, share in enumerate(output["axes"]):
            if share is not None:
                text = f"the elements of {name} could be their neighbors along axis {axis}"
                yield context.share(f"output axis {axis}: {name}", share, text)


def _argument(context: _Context, name: str, workload: Workload, wrong: bool) -> Finding:  # noqa: FBT001
    where = _Context(context.task, context.direction, workload)
    does = "makes the result wrong" if wrong else "leaves the result correct on every workload"
    text = f"changing only {name} {does}"
    # Gradients need not depend on every input: that of a sum does not on what was added.
    passed = None if context.direction is Direction.BACKWARD and not wrong else wrong
    return where.finding(f"input impact: {name}", float(wrong), "1", passed, text)


def _work(context: _Context, seen: Mapping[str, Any]) -> Iterator[Finding]:
    cost = context.task.cost(context.workload, context.direction)
    if cost is None:
        yield context.unknown("work: bytes", BYTES_RATIO, "the task has no work formula")
        yield context.unknown("work: flops", FLOPS_RATIO, "the task has no work formula")
        return
    yield context.ratio("work: bytes", cost.bytes, seen["bytes"], BYTES_RATIO)
    if seen["uncounted"]:
        why = f"kbench can't count the arithmetic of {', '.join(seen['uncounted'])}"
        yield context.unknown("work: flops", FLOPS_RATIO, why)
    else:
        yield context.ratio("work: flops", cost.flops, seen["flops"], FLOPS_RATIO)


def _baseline(context: _Context, seen: Mapping[str, Any], config: SupervisorConfig) -> Finding:
    limit = f"at most {SLOW_BASELINE:g}"
    floor = _floor_ns(context.task.cost(context.workload, context.direction), context.task, config)
    if floor is None or floor < JUDGED_FLOOR_NS:
        why = "no floor is known" if floor is None else f"the floor, {floor:.0f} ns, is too short"
        return context.finding("baseline", None, limit, None, f"{why} to judge eager by")
    ratio = seen["eager_ns"] / floor
    text = f"eager took {duration_text(seen['eager_ns'])}, the floor is {duration_text(floor)}"
    return context.finding("baseline", ratio, limit, ratio <= SLOW_BASELINE, text)


def _floor_ns(cost: Cost | None, task: Task, config: SupervisorConfig) -> float | None:
    known = measured_or_theoretical(config)
    return floor_ns(cost, known.peak, task.dtype) if cost and known else None


def describe_filters(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each finding: what was found, and whether it passes."""
    words = {True: "passed", False: "FLAGGED", None: "unknown"}
    rows = [
        (f"{f['direction']}: {f['name']}", words[f["passed"]], f"{f['text']}{_allowed(f)}")
        for f in findings
    ]
    wide = max((len(row[0]) for row in rows), default=0)
    return [f"  {name:<{wide}}  {state:<7}  {text}" for name, state, text in rows]


def _allowed(finding: Mapping[str, Any]) -> str:
    """The number and its limit, but of questions that have a yes or a no."""
    if finding["value"] is None or finding["name"].startswith("input impact"):
        return ""
    return f": {finding['value']:g}, allowed {finding['limit']}"
