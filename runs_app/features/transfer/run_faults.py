"""What is wrong with a file of a run, before anything of it is stored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.characters import bad_character
from gpu_runner.data.codec import DataError, caught, encode, refuse
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.scores import summary
from gpu_runner.data.verdict import Verdict
from runs_app.features.transfer import faults
from runs_app.features.transfer.record import IMPORTED, Record, ResultRecord, RunFile
from runs_app.models import LanguageModelCall, Run, Status
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.feedback import Feedback
from tasks_app.models import TaskVersion

_Call = LanguageModelCall.Status
_FOLLOWING = ("latency_ns", "floor_fraction", "p_score")  # from a result's workloads
_OF_RUNS = (Run.Status.FINISHED, Run.Status.STOPPED)
_OF_CALLS = (_Call.ANSWERED, _Call.FAILED, _Call.INTERRUPTED)
_OF_EVALUATIONS = (Status.FINISHED, Status.CANCELLED)


def refuse_wrong(file: RunFile, now: datetime) -> None:
    """Refuse what no site could have written; raises `DataErrors` with the first of the faults."""
    faults.refuse_wrong(file, now)
    try:
        refuse(_unstorable(encode(file.run), "run"))
    except RecursionError:
        raise DataError("run", "is nested too deeply") from None
    refuse(_faults(file, now))


def misfits(run: Record, version: TaskVersion) -> Iterator[DataError]:
    """What of a run and its results does not fit the task version that it is about."""
    if version.task.slug != run.task:
        yield DataError("run.task", f"on this site, the digest belongs to {version.task.slug}")
    if run.direction not in version.directions:
        have = ", ".join(version.directions)
        yield DataError("run.direction", f"task {run.task} has only: {have}")
    names = {each.name for each in version.data.workloads} - set(version.hidden_names)
    for field, evaluation in _evaluations(run):
        found = evaluation.result.workloads if evaluation.result else ()
        if unknown := [each.name for each in found if each.hidden or each.name not in names]:
            reason = f"{unknown[0][:60]!r} is not a listed workload of {run.task}"
            yield DataError(f"{field}.result.workloads", reason)


def _faults(file: RunFile, now: datetime) -> Iterator[DataError]:
    run = file.run
    yield from faults.of_ids(run, "run", ("id",))
    yield from faults.of_names(run, "run")
    yield from faults.of_texts({"device_name": run.device_name, "task": run.task}, "run.")
    yield from _life(run, "run", run.ended_at, _OF_RUNS, now)
    yield from _undecoded(RunConfig, run.config, "run.config")
    yield from _undecoded(Problem, run.problem, "run.problem")
    yield from _calls(run, now)
    for field, each in _evaluations(run):
        yield from _life(each, field, each.finished_at, _OF_EVALUATIONS, now)
        if each.result is not None:
            yield from _result(each, f"{field}.result")
    yield from _candidates(run, {each.submission: each for each in file.results}, now)
    yield from _events(run, now)
    best = [each for each in run.candidates if each.number == run.best]
    if bool(best) is (run.best is None):
        yield DataError("run.best", f"there is no candidate {run.best}")
    if run.best_latency_ns != (best[0].latency_ns if best else None):
        yield DataError("run.best_latency_ns", "doesn't match the best candidate")
    seeds = [each for each in run.candidates if each.edit == "seed"]
    yield from _untold({"latency_ns": run.seed_latency_ns}, seeds, "run.seed_")
    yield from _money(run, "run", ("usd",))


def _calls(run: Record, now: datetime) -> Iterator[DataError]:
    for n, call in enumerate(run.calls):
        field = f"run.calls[{n}]"
        yield from _life(call, field, call.ended_at, _OF_CALLS, now)
        if not faults.MODEL.fullmatch(call.language_model):
            yield DataError(f"{field}.language_model", "is not a valid name")
        yield from _money(call, field, ("worst_usd", "cost_usd"))


def _candidates(
    run: Record, entered: dict[str, ResultRecord], now: datetime
) -> Iterator[DataError]:
    yield from _unordered([each.number for each in run.candidates], "run.candidates")
    if run.candidates_made != len(run.candidates):
        yield DataError("run.candidates_made", f"is not {len(run.candidates)}")
    calls = {None, *(call.number for call in run.calls)}
    for n, each in enumerate(run.candidates):
        field = f"run.candidates[{n}]"
        yield from _moments(each, field, now)
        yield from _untold(vars(each), [each], f"{field}.")
        if each.call not in calls:
            yield DataError(f"{field}.call", f"there is no call {each.call}")
        if each.evaluations and not each.submission:
            yield DataError(f"{field}.submission", "is empty, but the candidate has evaluations")
        entry = entered.pop(each.entry, None) if each.entry else None
        if each.entry and not _is_of(entry, each, run):
            yield DataError(f"{field}.entry", "is no submission of this candidate in `results`")
        if each.feedback is not None:
            wrong = list(_undecoded(Feedback, each.feedback, f"{field}.feedback"))
            yield from wrong or _untold(each.feedback, [each], f"{field}.feedback.")
    if entered:
        yield DataError("results", "contains a submission that didn't come from any candidate")


def _is_of(entry: ResultRecord | None, candidate: Record, run: Record) -> bool:
    if entry is None:
        return False
    of_entry = entry.source, entry.task_digest, entry.device, entry.direction
    return of_entry == (candidate.source, run.task_digest, run.device, run.direction)


def _events(run: Record, now: datetime) -> Iterator[DataError]:
    yield from _unordered([each.seq for each in run.events], "run.events")
    if not run.events:
        yield DataError("run.events", "is empty")
    for n, each in enumerate(run.events):
        field = f"run.events[{n}]"
        yield from _moments(each, field, now)
        if each.kind == IMPORTED:
            yield DataError(f"{field}.kind", "can only be written by an import")
        if not events.is_known(each.kind):
            continue
        payload = {key: value for key, value in each.payload.items() if key != "row"}
        kind = events.KINDS[each.kind]
        if wrong := list(_undecoded(kind, payload, f"{field}.payload")):
            yield from wrong
        elif each.kind == "measured":
            measured = [one for one in run.candidates if one.number == payload["candidate"]]
            yield from _untold(payload, measured, f"{field}.payload.")


def _result(evaluation: Record, field: str) -> Iterator[DataError]:
    """Whether the times are a runner's, and the headline follows from them."""
    result: EvaluationResult = evaluation.result
    if result.mode is not evaluation.mode:
        yield DataError(f"{field}.mode", f"is not {evaluation.mode.value}")
    if evaluation.status != Status.FINISHED:
        yield DataError(field, "must be null: the evaluation was canceled")
    yield from faults.of_environment(encode(result.environment), f"{field}.environment")
    for n, workload in enumerate(result.workloads):
        yield from faults.of_workload(workload, f"{field}.workloads[{n}]")
    for name, value in result.unlisted_speedups.items():
        yield from faults.positive(f"{field}.unlisted_speedups.{name}", value)
    if result.hard_ratio is not None:
        yield from faults.positive(f"{field}.hard_ratio", result.hard_ratio)
    if result.verdict is not Verdict.CORRECT:
        return
    found = summary(result.workloads)
    told = {name: (getattr(result, name), found[name]) for name in _FOLLOWING}
    yield from faults.unlike(told, field)
    names = {*result.speedups, *found["speedups"]}
    pairs = {name: (result.speedups.get(name), found["speedups"].get(name)) for name in names}
    yield from faults.unlike(pairs, f"{field}.speedups")


def _untold(
    said: Mapping[str, Any], candidates: Sequence[Record], prefix: str
) -> Iterator[DataError]:
    """Which figures no evaluation of these candidates bears out.

    Baselines that join later make a speedup smaller, but never larger than over one of them.
    """
    results = [each.result for one in candidates for each in one.evaluations if each.result]
    for name in ("latency_ns", "floor_fraction"):
        value, found = said.get(name), [getattr(result, name) for result in results]
        known = [each for each in found if each is not None]
        if value is not None and not any(
            math.isclose(value, each, rel_tol=faults.CLOSE) for each in known
        ):
            yield DataError(prefix + name, f"is {value}, which matches no evaluation")
    ratios = [v for r in results for v in (*r.speedups.values(), *r.unlisted_speedups.values())]
    most = (1 + faults.CLOSE) * max(ratios, default=0.0)
    told = {name: said.get(name) for name in ("speedup", "score")}
    told |= {f"speedups.{name}": value for name, value in said.get("speedups", {}).items()}
    for name, value in told.items():
        if value is not None and not 0 < value <= most:
            yield DataError(prefix + name, f"is {value}, which matches no evaluation")


def _money(row: Record, field: str, names: Sequence[str]) -> Iterator[DataError]:
    for name in names:
        if (value := getattr(row, name)) is not None and not value >= 0:
            yield DataError(f"{field}.{name}", "must be 0 or more")


def _life(
    row: Record, field: str, ended_at: str | None, over: Sequence[str], now: datetime
) -> Iterator[DataError]:
    """Whether it has come to its end, at moments that have passed."""
    if row.status not in over:
        yield DataError(f"{field}.status", f"must be {' or '.join(over)}")
    if ended_at is None:
        yield DataError(field, "has no end time")
    yield from _moments(row, field, now)


def _moments(row: Record, field: str, now: datetime) -> Iterator[DataError]:
    told = {each.name: getattr(row, each.name) for each in fields(row) if each.name.endswith("_at")}
    present = {name: text for name, text in told.items() if text is not None}
    yield from faults.of_moments(present, f"{field}.", now)


def _unordered(numbers: Sequence[int], field: str) -> Iterator[DataError]:
    if list(numbers) != list(range(1, len(numbers) + 1)):
        yield DataError(field, "must be numbered from 1 and in order")


def _evaluations(run: Record) -> Iterator[tuple[str, Record]]:
    for n, candidate in enumerate(run.candidates):
        for m, each in enumerate(candidate.evaluations):
            yield f"run.candidates[{n}].evaluations[{m}]", each


def _undecoded(kind: type[object], document: object, field: str) -> Iterator[DataError]:
    yield from caught(codec.decode_stored, kind, document, field)


def _unstorable(value: object, field: str) -> Iterator[DataError]:
    """Which texts of a JSON value no database can hold."""
    if isinstance(value, str) and (reason := bad_character(value)):
        yield DataError(field, reason)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _unstorable(key, field)
            yield from _unstorable(each, f"{field}.{key}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _unstorable(each, f"{field}[{number}]")
