"""What a file of results or of a run holds; frozen, and decoded by `gpu_runner.data.codec`.

Of a run that is its rows as they are, under ids of the site that measured it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from datetime import datetime
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models

from gpu_runner.data import codec
from gpu_runner.data.codec import LEFT_OUT
from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import EvaluationResult, Measurement, OutputError, WorkloadResult
from gpu_runner.data.scores import speedups, summary
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from runs_app.models import Candidate, Evaluation, LanguageModelCall, Run, RunEvent

FORMAT = "kbench-results"
VERSION = 2


@dataclass(frozen=True, kw_only=True)
class WorkloadRecord:
    """Times of one listed workload; the fields are those of `WorkloadResult`."""

    name: str
    parameters: Mapping[str, object]
    measurement: Measurement | None = None
    baselines: Mapping[str, Measurement]
    errors: tuple[OutputError, ...] = ()
    flops: float | None = None  # of a call
    bytes: float | None = None  # that a call has to move
    weight: float = 1.0  # in the P score
    floor_ns: float | None = None
    claimed_ns: float | None = None

    @property
    def result(self) -> WorkloadResult:
        """The same, as a part of a result; the calls behind the times do not travel."""
        ratios = speedups(self.measurement, self.baselines)
        return WorkloadResult(hidden=False, speedups=ratios, **vars(self))


@dataclass(frozen=True, kw_only=True)
class ResultRecord:
    """One ranked result of a public submission.

    `evaluation` and `submission` are their ids on the site that measured them. `agent_kind` is one
    of person, agent, shipped. `latency_ns` and `speedup_best` follow from the workloads. Moments
    are in ISO 8601 with an offset. `environment` holds the versions of software.
    """

    evaluation: str
    submission: str
    task: str
    task_version: int  # its number on that site
    task_digest: str  # of the version's content, by which sites find their own
    direction: Direction
    device: str
    device_kind: DeviceKind
    device_name: str
    language: Language
    source: str
    entry: str = field(default="", metadata=LEFT_OUT)  # as in `Solution`
    files: Mapping[str, str] = field(default_factory=dict, metadata=LEFT_OUT)
    source_digest: str
    agent: str
    agent_kind: str
    submitter: str
    language_model: str = ""
    mode: Mode
    verdict: Verdict
    reason: str = ""
    latency_ns: float | None = None
    speedup_best: float | None = None
    unlisted_speedups: Mapping[str, float]  # as in `EvaluationResult`
    pending_baselines: tuple[str, ...] = ()  # that were not measured yet
    workloads: tuple[WorkloadRecord, ...]
    environment: Environment
    entered_at: str
    measured_at: str

    @property
    def headline(self) -> dict[str, Any]:
        """What follows from the workloads; empty unless the verdict is CORRECT."""
        if self.verdict is not Verdict.CORRECT:
            return {}
        found = summary([workload.result for workload in self.workloads])
        return found | {"unlisted_speedups": dict(self.unlisted_speedups)}

    def result(self, device: str) -> EvaluationResult:
        """The result as this site stores it, on the board of `device`."""
        return EvaluationResult(
            evaluation_id=self.evaluation,
            attempt=1,
            verdict=self.verdict,
            reason=self.reason,
            mode=self.mode,
            device=device,
            task=self.task,
            task_digest=self.task_digest,
            solution_digest=self.source_digest,
            workloads=tuple(workload.result for workload in self.workloads),
            pending_baselines=self.pending_baselines,
            environment=replace(self.environment, submitter=self.submitter),
            **self.headline,
        )


@dataclass(frozen=True, kw_only=True)
class ResultFile:
    """Results of one site; `site` is what others shall call it, `note` a line for people.

    READS: versions of the file that can be imported.
    """

    READS: ClassVar[tuple[int, ...]] = (VERSION,)

    format: str = FORMAT
    version: int = VERSION
    site: str
    note: str = ""
    exported_at: str
    results: tuple[ResultRecord, ...]

    def digest(self) -> str:
        """SHA-256 of what it says, whether it was written as JSON or as Parquet."""
        text = json.dumps(codec.encode(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


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


def _made_record(model: type[models.Model], columns: str, **others: object) -> Record:
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


EvaluationRecord = _made_record(
    Evaluation,
    "status reason created_at started_at finished_at",
    id=str,
    mode=Mode,
    must_beat_ns=Mapping[str, float],
    result=EvaluationResult | None,  # none of one that was canceled or lost
)

CandidateRecord = _made_record(
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

CallRecord = _made_record(
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

EventRecord = _made_record(RunEvent, "seq kind created_at", payload=Mapping[str, object])

RunRecord = _made_record(
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
    run: _Run
