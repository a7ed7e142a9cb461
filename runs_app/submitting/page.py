"""What the page of an evaluation shows: stages, workloads and environment, ready to print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.environment import Environment, Peaks, Rates
from gpu_runner.data.evaluation import (
    JUDGED_FLOOR_NS,
    SLOW_BASELINE,
    EvaluationResult,
    Measurement,
    OutputError,
    WorkloadResult,
)
from gpu_runner.data.floor import PARTS
from gpu_runner.data.formats.kbench import library_titles
from gpu_runner.data.task import PYTORCH
from gpu_runner.data.verdict import DeviceKind, Direction, Mode, Stage, Verdict
from runs_app.core.profile.hardware import hardware_lines
from runs_app.models import Evaluation
from tasks_app.models import TaskVersion
from tasks_app.numbers import percent
from tasks_app.templatetags.display import amount

TENSOR_CORES = "which tensor cores can exceed with split inputs"
_BAD_AT_END = {"COMPILE_ERROR": Stage.BUILD, "WRONG_RESULT": Stage.VERIFY}


@dataclass(kw_only=True)
class StageRow:
    """A stage in the timeline; `state` is pending, running, done, failed, canceled or skipped."""

    stage: str
    state: str = "pending"
    duration_s: float | None = None
    detail: str = ""
    since: str = ""  # when it began to run, in ISO 8601

    @property
    def sign(self) -> str:
        """A character that says the state without colour."""
        return {"pending": "○", "running": "●", "done": "✓", "failed": "✗"}.get(self.state, "–")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A baseline's time in one workload, and the speedup against it with its interval."""

    name: str
    measurement: Measurement
    speedup: float | None
    low: float | None = None  # ends of the speedup's 95 % interval
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class WorkloadRow:
    """One workload of a result, ready to print."""

    name: str
    parameters: str  # in words, such as N=4096
    hidden: bool
    measurement: Measurement | None  # of the kernel
    comparisons: tuple[Comparison, ...]
    columns: tuple[Comparison | None, ...]  # one for each of the table's baselines
    best: Comparison | None  # against the faster baseline
    floor_ns: float | None  # the physical limit
    floor_fraction: float | None  # the physical limit over the time
    measured_fraction: float | None  # of the peak that the device was measured to reach
    scaled_error: float | None  # the largest error over its bound; at most 1 passes
    processes: int = 0  # in how many it was measured
    verified: int = 0  # how many of its calls were verified
    errors: tuple[OutputError, ...] = ()


def stage_rows(
    mode: str,
    events: Iterable[Mapping[str, Any]],
    attempt: int,
    result: EvaluationResult | None,
    *,
    is_over: bool = False,
) -> list[StageRow]:
    """The timeline of one attempt; `events` are in the form in which sockets show them.

    Of an evaluation that is over without a result, no stage is shown as if it ran.
    """
    rows = {stage.value: StageRow(stage=stage.value) for stage in _stages(mode)}
    for event in events:
        payload = event["payload"]
        row = rows.get(event["stage"])
        if event["attempt"] != attempt or event["kind"] != "stage" or row is None:
            continue
        state = payload.get("state", "running")
        row.since = (row.since or event["at"]) if state == "running" else ""
        row.state = state
        row.detail = payload.get("detail", "") or row.detail
    if result is not None:
        _close(rows, result)
    elif is_over:
        _cut_off(rows.values())
    return list(rows.values())


def _stages(mode: str) -> list[Stage]:
    if mode == Mode.COMPILE:
        return [Stage.BUILD]
    own = {Stage.PROFILE: Mode.PROFILE, Stage.AUDIT: Mode.AUDIT}  # in one mode alone
    return [stage for stage in Stage if own.get(stage, mode) == mode]


def workload_rows(result: EvaluationResult) -> list[WorkloadRow]:
    """The workloads of a result, the listed ones first; none if nothing was found out of any."""
    names = baseline_names(result)
    rows = [_workload_row(entry, names, result.environment.measured) for entry in result.workloads]
    if not any(row.measurement or row.comparisons or row.errors for row in rows):
        return []
    return sorted(rows, key=lambda row: row.hidden)


def coverage(evaluation: Evaluation, rows: Iterable[WorkloadRow]) -> str:
    """How many workloads a mode without the hidden ones has measured; empty if it's all."""
    if evaluation.mode in (Mode.RANKED, Mode.AUDIT):
        return ""
    kind, direction = DeviceKind(evaluation.device.kind), Direction(evaluation.direction)
    whole = evaluation.task_version.data.workloads_for(kind, direction, hidden=True)
    hidden = sum(workload.hidden for workload in whole)
    count = sum(row.measurement is not None for row in rows)
    why = f"; {hidden} {'is' if hidden == 1 else 'are'} for ranked mode only" if hidden else ""
    return f"{count} of {len(whole)} workloads were measured{why}." if count < len(whole) else ""


def baseline_names(result: EvaluationResult) -> list[str]:
    """Names of all baselines in the table, in order of appearance."""
    return list(dict.fromkeys(name for each in result.workloads for name in each.baselines))


def library_speedups(result: EvaluationResult, version: TaskVersion) -> dict[str, float]:
    """Speedups on listed sizes over the libraries that the task names, by the task's titles."""
    known = result.speedups
    titles = library_titles(version.data) if set(known) - {*PYTORCH, "best"} else {}
    return {title: known[name] for name, title in titles.items() if name in known}


def environment_rows(environment: Environment) -> list[tuple[str, str]]:
    """The environment as labels and values."""
    rows = [
        (name.replace("_", " "), _words(value))
        for name, value in codec.encode(environment).items()
        if value not in (None, "", [], {}) and name not in ("peaks", "hardware")
    ]
    facts = hardware_lines(environment) if environment.hardware else ()
    return [*rows, ("hardware", "; ".join(facts))] if facts else rows


def _words(value: object) -> str:
    """A fact of an environment as people read it, without marks of JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_words(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(_words(each) for each in value)
    return str(value)


def limit_sentences(environment: Environment) -> list[str]:
    """What the device could do at best, by its maker and as measured, a sentence each."""
    known = environment.peaks or Peaks()
    sentences = []
    for peak, label in ((known.theoretical, "Physical limit"), (known.measured, "Measured peak")):
        if peak is None:
            continue
        rates = amount(peak.bytes_per_s, "B/s")
        if peak.flop_per_s:
            rates += f" and {amount(peak.flop_per_s, 'FLOP/s')}"
        reached = f"; this kernel reaches {percent(peak.fraction)}" if peak.fraction else ""
        sentences.append(f"{label}: {rates}, {peak.source}{reached}.")
    if sentences:
        sentences.append("Caches are emptied before each call, so memory bandwidth counts.")
    elif environment.device_kind is DeviceKind.CPU:
        sentences.append("Run it in profile mode to see the measured peak of this CPU.")
    note = known.note
    return [*sentences, f"{note[:1].upper()}{note[1:]}."] if note else sentences


def above_limit_sentence(result: EvaluationResult, dtype: str) -> str:
    """Why a result can be faster than the physical limit; empty if it isn't known to be."""
    peak = result.environment.peaks.theoretical if result.environment.peaks else None
    if peak is None or (result.floor_fraction or 0.0) <= 1:
        return ""
    rate = peak.flop_per_s or math.inf
    known = [work for work in result.workloads if work.bytes and work.flops and not work.hidden]
    if not any((work.flops or 0) / rate > (work.bytes or 0) / peak.bytes_per_s for work in known):
        return "The limit counts every byte as read from memory. Caches let a kernel exceed it."
    if dtype in PARTS:
        return f"The limit is {peak_name(dtype)}, {TENSOR_CORES}."
    return "The limit counts every operation of the task's formula; an algorithm can save some."


def peak_name(dtype: str) -> str:
    """Which rate of arithmetic a device's data sheet gives for a dtype."""
    return f"the {dtype} peak without tensor cores" if dtype in PARTS else f"the {dtype} peak"


def threads_sentence(environment: Environment) -> str:
    """With how many threads outputs were verified, and what came of races; empty on a GPU."""
    count, races = environment.verified_with_threads, environment.races
    if not count or not races:
        return ""
    return f"Outputs were verified with teams of {count} threads as well. Races: {races}."


def slow_baseline_sentence(rows: Iterable[WorkloadRow]) -> str:
    """Where even the best baseline is far from what the device can do; empty if nowhere.

    As the filter `baseline` judges a task, by the times of this device.
    """
    times = {
        row.name: row.best.measurement.time_ns / row.floor_ns
        for row in rows
        if row.best and (row.floor_ns or 0.0) >= JUDGED_FLOOR_NS
        if row.floor_ns and not row.hidden
    }
    slow = {name: ratio for name, ratio in times.items() if ratio > SLOW_BASELINE}
    if not slow:
        return ""
    worst = max(slow, key=lambda name: slow[name])
    return (
        f"On {len(slow)} of {len(times)} workloads with a limit of {JUDGED_FLOOR_NS / 1000:g} µs "
        f"or more, the best baseline takes more than {SLOW_BASELINE:g} times the physical limit "
        f"({slow[worst]:.0f} times on {worst}). There, the share of the limit says more than the "
        f"speedup."
    )


def _close(rows: dict[str, StageRow], result: EvaluationResult) -> None:
    """Take durations from the result, and say which stage failed and which never ran."""
    verdict = result.verdict
    for entry in result.stages:
        row = rows.get(entry.stage)
        if row is not None:
            row.duration_s = (row.duration_s or 0.0) + entry.duration_s
            row.state = "done"
    good = verdict in (Verdict.CORRECT, Verdict.COMPILED, Verdict.UNSTABLE)
    ran = [row for row in rows.values() if row.state in ("done", "running")]
    if not good and ran:
        blamed = _BAD_AT_END.get(verdict)
        failed = next((row for row in ran if row.stage == blamed), ran[-1])
        failed.state = "failed"
    for row in rows.values():
        row.state = {"pending": "skipped", "running": "done"}.get(row.state, row.state)


def _cut_off(rows: Iterable[StageRow]) -> None:
    """What ran was canceled, what had not begun is skipped."""
    for row in rows:
        row.state = {"pending": "skipped", "running": "canceled"}.get(row.state, row.state)
        row.since = ""


def _workload_row(
    entry: WorkloadResult, names: Sequence[str], measured: Rates | None
) -> WorkloadRow:
    measurement, floor_ns = entry.measurement, entry.floor_ns
    by_name = {
        name: _comparison(name, baseline, measurement) for name, baseline in entry.baselines.items()
    }
    known = [c for c in by_name.values() if c.speedup is not None]
    return WorkloadRow(
        name=entry.name,
        parameters=", ".join(f"{k}={v}" for k, v in entry.parameters.items()),
        hidden=entry.hidden,
        measurement=measurement,
        comparisons=tuple(by_name.values()),
        columns=tuple(map(by_name.get, names)),
        best=min(known, key=lambda c: c.speedup or 0.0) if known else None,
        floor_ns=floor_ns,
        floor_fraction=floor_ns / measurement.time_ns if floor_ns and measurement else None,
        measured_fraction=_share_of(measured, entry),
        scaled_error=max((error.scaled for error in entry.errors), default=None),
        processes=len(entry.processes),
        verified=sum(len(run.verified) for run in entry.processes),
        errors=entry.errors,
    )


def _share_of(peak: Rates | None, entry: WorkloadResult) -> float | None:
    """The time that a workload's bytes or operations take at a peak, over its measured time."""
    if not peak or not entry.measurement or entry.bytes is None:
        return None
    computing_s = (entry.flops or 0.0) / peak.flop_per_s if peak.flop_per_s else 0.0
    least_s = max(entry.bytes / peak.bytes_per_s, computing_s)
    return least_s * 1e9 / entry.measurement.time_ns if least_s > 0 else None


def _comparison(name: str, baseline: Measurement, own: Measurement | None) -> Comparison:
    if own is None:
        return Comparison(name=name, measurement=baseline, speedup=None)
    return Comparison(
        name=name,
        measurement=baseline,
        speedup=baseline.time_ns / own.time_ns,
        low=baseline.low_ns / own.high_ns,
        high=baseline.high_ns / own.low_ns,
    )
