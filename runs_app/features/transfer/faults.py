"""What is wrong with a file of results, before anything of it is stored."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from gpu_runner.data import codec
from gpu_runner.data.characters import bad_character
from gpu_runner.data.codec import DataError, encode, refuse
from gpu_runner.data.evaluation import Measurement, WorkloadResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.features.transfer.record import ResultFile, ResultRecord, WorkloadRecord
from runs_app.models import Agent
from runs_app.models.submission import solution_of
from tasks_app.models import TaskVersion

T = TypeVar("T", bound=ResultFile)

SITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:-]{0,39}", re.ASCII)
"""How a site may be called: it stands in names of agents and devices."""
_NAME = re.compile(r"[A-Za-z0-9_@.+-][\w .:/@+()-]{0,99}", re.ASCII)
MODEL = re.compile(r"[A-Za-z0-9][\w .:/@+()-]{0,99}", re.ASCII)
_DEVICE = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
_LONGEST = {"note": 500, "device_name": 90, "reason": 4000, "task": 100}
_ENVIRONMENT_BYTES = 20_000
_MOST_RESULTS = 20_000
CLOSE = 1e-6
"""How far a number may be from what follows from the workloads, relatively."""
_EARLY = timedelta(days=1)  # clocks of sites may differ, by no more than this
_KINDS = tuple(kind.value for kind in Agent.Kind)


def decode(document: Any, kind: type[T]) -> T:
    """The file of that kind that a document is; raises `DataError` naming the field."""
    found = document.get("format") if isinstance(document, dict) else None
    if found != kind.format:
        raise DataError("format", f"must be {kind.format!r}, not {str(found)[:40]!r}")
    if document.get("version") not in kind.READS:
        said, reads = str(document.get("version"))[:40], " and ".join(map(str, kind.READS))
        raise DataError("version", f"is {said}; this version of kbench reads {reads}")
    file = codec.decode(kind, document)
    if len(file.results) > _MOST_RESULTS:
        raise DataError("results", f"has {len(file.results)} entries; the limit is {_MOST_RESULTS}")
    return file


def refuse_wrong(file: ResultFile, now: datetime) -> None:
    """Refuse what no site could have written; raises `DataErrors` with the first of the faults."""
    refuse(_faults(file, now))


def misfits(record: ResultRecord, version: TaskVersion, field: str) -> Iterator[DataError]:
    """What of a record does not fit the task version that it is about."""
    if record.direction.value not in version.directions:
        have = ", ".join(version.directions)
        yield DataError(f"{field}.direction", f"task {record.task} has only: {have}")
        return
    kind = record.device_kind
    workloads = version.data.workloads_for(kind, record.direction, hidden=False)
    names, found = {w.name for w in workloads}, [w.name for w in record.workloads]
    unknown = [name for name in found if name not in names]
    if unknown:
        reason = f"{unknown[0][:60]!r} is not a listed workload of {record.task} on {kind.value}"
        yield DataError(f"{field}.workloads", reason)
    elif len(set(found)) < len(found):
        yield DataError(f"{field}.workloads", "lists a workload twice")
    elif record.verdict is Verdict.CORRECT and (lacking := sorted(names - set(found))):
        yield DataError(f"{field}.workloads", f"lacks {lacking[0]!r}")


def moment(text: str, field: str) -> datetime:
    """A moment with an offset; raises `DataError`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise DataError(field, f"{text[:40]!r} is not an ISO 8601 time") from None
    if found.tzinfo is None:
        raise DataError(field, "has no UTC offset")
    return found


def _faults(file: ResultFile, now: datetime) -> Iterator[DataError]:
    if not SITE.fullmatch(file.site):
        reason = (
            "must have 1 to 40 letters, digits, spaces and . _ : -, and begin with a letter "
            "or digit"
        )
        yield DataError("site", reason)
    yield from of_texts({"note": file.note}, "")
    yield from of_moments({"exported_at": file.exported_at}, "", now)
    known: set[str] = set()
    for number, record in enumerate(file.results):
        field = f"results[{number}]"
        if record.evaluation in known:
            yield DataError(f"{field}.evaluation", "appears twice in this file")
        known.add(record.evaluation)
        yield from _record(record, field, now)


def _record(record: ResultRecord, field: str, now: datetime) -> Iterator[DataError]:
    yield from of_ids(record, field, ("evaluation", "submission"))
    yield from of_names(record, field)
    texts = {name: getattr(record, name) for name in ("device_name", "reason", "task")}
    yield from of_texts(texts, f"{field}.")
    moments = {"entered_at": record.entered_at, "measured_at": record.measured_at}
    yield from of_moments(moments, f"{field}.", now)
    yield from _kernel(record, field)
    yield from of_environment(encode(record.environment), f"{field}.environment")
    if record.mode is not Mode.RANKED:
        yield DataError(f"{field}.mode", "only ranked results can be on boards")
    if record.verdict in (Verdict.SYSTEM_ERROR, Verdict.COMPILED):
        yield DataError(f"{field}.verdict", f"{record.verdict.value} doesn't judge a kernel")
    for number, workload in enumerate(record.workloads):
        yield from of_workload(workload, f"{field}.workloads[{number}]")
    for name, value in record.unlisted_speedups.items():
        yield from positive(f"{field}.unlisted_speedups.{name}", value)
    yield from _headline(record, field)


def of_ids(record: ResultRecord, field: str, names: Iterable[str]) -> Iterator[DataError]:
    """Which of these fields of a record are no ids."""
    for name in names:
        text = getattr(record, name)
        try:
            is_one = str(UUID(text)) == text
        except ValueError:
            is_one = False
        if not is_one:
            yield DataError(f"{field}.{name}", f"{text[:60]!r} is not a UUID in the usual form")


def of_names(record: ResultRecord, field: str) -> Iterator[DataError]:
    """What is wrong with the names in a record, be it of a result or of a run."""
    for name in ("agent", "submitter", "language_model"):
        text = getattr(record, name, "")
        pattern = MODEL if name == "language_model" else _NAME
        if not pattern.fullmatch(text) and (text or name == "agent"):
            yield DataError(f"{field}.{name}", f"{text[:60]!r} is not a valid name")
    if not _DEVICE.fullmatch(record.device):
        yield DataError(f"{field}.device", f"{record.device[:60]!r} is not a valid device name")
    if not record.device_name.strip():
        yield DataError(f"{field}.device_name", "is empty")
    if record.agent_kind not in _KINDS:
        reason = f"{record.agent_kind[:60]!r} is not one of {', '.join(_KINDS)}"
        yield DataError(f"{field}.agent_kind", reason)


def _kernel(record: ResultRecord, field: str) -> Iterator[DataError]:
    if record.device_kind not in record.language.device_kinds:
        kind, language = record.device_kind.value, record.language.label
        yield DataError(f"{field}.language", f"a {kind} device can't run {language}")
    try:
        found = solution_of(record).digest()
    except DataError as error:
        yield DataError(f"{field}.{error.field}", error.reason)
    else:
        if found != record.source_digest:
            yield DataError(f"{field}.source_digest", f"doesn't match the source's digest, {found}")


def of_workload(workload: WorkloadRecord | WorkloadResult, field: str) -> Iterator[DataError]:
    """What is wrong with the times of a workload."""
    yield from of_environment(workload.parameters, f"{field}.parameters")
    yield from positive(f"{field}.weight", workload.weight)
    for name in ("flops", "bytes", "floor_ns", "claimed_ns"):
        value = getattr(workload, name)
        if value is not None and not (math.isfinite(value) and value >= 0):
            yield DataError(f"{field}.{name}", "must be a finite number, 0 or more")
    for name in workload.baselines:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,29}", name):
            yield DataError(f"{field}.baselines", f"{name[:60]!r} is not a valid baseline name")
    for number, error in enumerate(workload.errors):
        yield from of_texts({"output": error.output}, f"{field}.errors[{number}].")
    for measured in (workload.measurement, *workload.baselines.values()):
        yield from _calls(measured, field)


def _calls(measured: Measurement | None, field: str) -> Iterator[DataError]:
    if measured is not None and not 0 <= measured.calls < 1 << 31:
        yield DataError(f"{field}.calls", "must be from 0 to 2147483647")


def _headline(record: ResultRecord, field: str) -> Iterator[DataError]:
    """Whether times and speedups follow from the workloads, and are there iff CORRECT."""
    if record.verdict is not Verdict.CORRECT:
        for name in ("latency_ns", "speedup_best"):
            if getattr(record, name) is not None:
                yield DataError(f"{field}.{name}", "must be null unless the verdict is CORRECT")
        return
    if not record.workloads or any(w.measurement is None for w in record.workloads):
        yield DataError(f"{field}.workloads", "must each have a time if the verdict is CORRECT")
        return
    found = record.headline
    times = {"latency_ns": found["latency_ns"], "speedup_best": found["speedups"].get("best")}
    yield from unlike({name: (getattr(record, name), times[name]) for name in times}, field)


def unlike(
    pairs: Mapping[str, tuple[float | None, float | None]], field: str
) -> Iterator[DataError]:
    """Which numbers by name aren't those that follow from the workloads, the second of a pair."""
    for name, (said, value) in pairs.items():
        if (said is None) is not (value is None) or (
            said is not None and value is not None and not math.isclose(said, value, rel_tol=CLOSE)
        ):
            yield DataError(f"{field}.{name}", f"is {said}, but the workloads give {value}")


def of_moments(values: Mapping[str, str], prefix: str, now: datetime) -> Iterator[DataError]:
    """Which of these texts by name are no moments, or in the future."""
    for name, text in values.items():
        try:
            found = moment(text, prefix + name)
        except DataError as error:
            yield error
            continue
        if found > now + _EARLY:
            yield DataError(prefix + name, f"{text[:40]} is in the future")


def of_texts(values: Mapping[str, str], prefix: str) -> Iterator[DataError]:
    """Which of these texts by name are too long, or hold what no database can."""
    for name, text in values.items():
        limit = _LONGEST.get(name, 200)
        if len(text) > limit:
            yield DataError(prefix + name, f"has {len(text)} characters; the limit is {limit}")
        elif reason := bad_character(text):
            yield DataError(prefix + name, reason)


def of_environment(values: Mapping[str, object], field: str) -> Iterator[DataError]:
    """What is wrong with an encoded environment, or with another small object."""
    text = json.dumps(values, ensure_ascii=False)
    if len(text) > _ENVIRONMENT_BYTES:
        yield DataError(field, f"has {len(text)} characters; the limit is {_ENVIRONMENT_BYTES}")
    elif reason := bad_character(dict(values)):
        yield DataError(field, reason)


def positive(field: str, value: float) -> Iterator[DataError]:
    """Whether a number is finite and above 0."""
    if not (math.isfinite(value) and value > 0):
        yield DataError(field, "must be a finite number greater than 0")
