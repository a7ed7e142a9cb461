"""What a file of a run holds: its rows as they are, under ids of the site that measured it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, make_dataclass
from datetime import datetime
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from django.db import models

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import DeviceKind, Direction, Mode
from runs_app.features.transfer.record import ResultFile
from runs_app.models import Candidate, Evaluation, LanguageModelCall, Run, RunEvent

IMPORTED = "imported"
"""Kind of the last event of an imported run, which says where it was measured."""

Record = Any
"""One of the records below, which are made of their models' columns."""

_TYPES: Mapping[type[models.Field[object, object]], type] = {
    models.BooleanField: bool,
    models.IntegerField: int,
    models.FloatField: float,
    models.CharField: str,
    models.TextField: str,
    models.DateTimeField: str,  # in ISO 8601 with an offset
}


def _record(model: type[models.Model], columns: str, **others: object) -> Record:
    """A frozen record of these columns, typed as the model's, and of `others` with their types."""
    typed = [(name, _type(model._meta.get_field(name))) for name in columns.split()]
    name = f"{model.__name__}Record"
    return make_dataclass(name, [*typed, *others.items()], frozen=True, kw_only=True)


def _several(record: Record) -> object:
    return GenericAlias(tuple, (record, ...))


def _type(column: Any) -> Any:
    found = next(told for kind, told in _TYPES.items() if isinstance(column, kind))
    return found | None if column.null else found


def told(record: Record, row: models.Model, **others: object) -> Record:
    """The record of a row; `others` are the fields that aren't columns of it, or say less."""
    names = [each.name for each in fields(record) if each.name not in others]
    return record(**{name: _plain(getattr(row, name)) for name in names}, **others)


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


EvaluationRecord = _record(
    Evaluation,
    "status reason created_at started_at finished_at",
    id=str,
    mode=Mode,
    must_beat_ns=Mapping[str, float],
    result=EvaluationResult | None,  # none of one that was canceled or lost
)

CandidateRecord = _record(
    Candidate,
    "number source digest edit generation slot island model title state reason verdict latency_ns"
    " spread speedup floor_fraction bottleneck was_best created_at measured_at",
    parents=tuple[int, ...],
    knobs=Mapping[str, object],
    techniques=tuple[str, ...],
    votes=Mapping[str, bool],
    measured=tuple[Mode, ...],
    feedback=Mapping[str, object] | None,
    call=int | None,  # number of the call that wrote it
    submission=str,  # with which it was measured; empty if it wasn't
    entry=str,  # the submission in the file's results that entered it; empty if none did
    evaluations=_several(EvaluationRecord),
)

CallRecord = _record(
    LanguageModelCall,
    "role verifier about edit generation slot island prompt prompt_version temperature max_tokens"
    " seed worst_usd worst_tokens status response partial finish_reason served_by error error_kind"
    " problem tokens_in tokens_out cost_usd estimated attempts created_at sent_at ended_at",
    id=str,
    number=int,
    parents=tuple[int, ...],
    language_model=str,
    messages=tuple[Mapping[str, str], ...],
)

EventRecord = _record(RunEvent, "seq kind created_at", payload=Mapping[str, object])

RunRecord = _record(
    Run,
    "name strategy seed enters_best status reason by_budget usd tokens evaluations"
    " active_s candidates_made seed_latency_ns best_latency_ns created_at searched_at advanced_at"
    " ended_at",
    id=str,
    task=str,
    task_version=int,  # its number on that site
    task_digest=str,
    direction=Direction,
    device=str,
    device_kind=DeviceKind,
    device_name=str,
    agent=str,
    agent_kind=str,
    submitter=str,  # who started it, as others see them; empty if that could be an address
    config=Mapping[str, object],
    problem=Mapping[str, object],
    best=int | None,  # number of a candidate
    calls=_several(CallRecord),
    candidates=_several(CandidateRecord),
    events=_several(EventRecord),
)


if TYPE_CHECKING:
    _Run = Record
else:  # what `codec` decodes
    _Run = RunRecord


@dataclass(frozen=True, kw_only=True)
class RunFile(ResultFile):
    """One run of a site; the results are those with which its candidates stand on boards."""

    format: str = "kbench-run"
    version: int = 1
    run: _Run
