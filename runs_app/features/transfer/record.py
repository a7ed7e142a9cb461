"""What a file of results holds; frozen, and decoded by `gpu_runner.data.codec`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.codec import LEFT_OUT
from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import EvaluationResult, Measurement, OutputError, WorkloadResult
from gpu_runner.data.scores import speedups, summary
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict

FORMAT = "kbench-results"
VERSION = 2


@dataclass(frozen=True, kw_only=True)
class WorkloadRecord:
    """Times of one public workload; the fields are those of `WorkloadResult`."""

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
        return WorkloadResult(
            name=self.name,
            parameters=self.parameters,
            hidden=False,
            measurement=self.measurement,
            errors=self.errors,
            baselines=self.baselines,
            speedups=speedups(self.measurement, self.baselines),
            flops=self.flops,
            bytes=self.bytes,
            weight=self.weight,
            floor_ns=self.floor_ns,
            claimed_ns=self.claimed_ns,
        )


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
    """Results of one site; `site` is what others shall call it, `note` a line for people."""

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
