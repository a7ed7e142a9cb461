"""From the results on this site's boards to a file: what everybody may see, and no more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from gpu_runner.data.codec import DataError
from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import WorkloadResult
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from runs_app.core.integrity.eligibility import judged_evaluations, without_replaced
from runs_app.features.transfer.record import ResultFile, ResultRecord, WorkloadRecord
from runs_app.models import Evaluation, Submission
from tasks_app.disclosure import public_result
from tasks_app.people import shown_name


def exported(
    *,
    site: str,
    note: str,
    now: datetime,
    device: str = "",
    task: str = "",
    submissions: Collection[UUID] | None = None,
) -> tuple[ResultFile, list[str]]:
    """The file, and a line for each result that was left out because its record is too old to say.

    The ranked results of public submissions for the current versions of published tasks, right or
    wrong, that nobody doubts and no later one has replaced; none that were imported. Those of some
    `submissions` alone, if these are named.
    """
    rows = _rows(device, task)
    if submissions is not None:
        rows = rows.filter(submission__in=submissions)
    records: list[ResultRecord] = []
    left_out: list[str] = []
    for evaluation in rows.iterator(chunk_size=100):
        try:
            records.append(_record(evaluation))
        except DataError as error:
            left_out.append(f"{evaluation.pk}: {error}")
    file = ResultFile(site=site, note=note, exported_at=_text(now), results=tuple(records))
    return file, left_out


def _rows(device: str, task: str) -> QuerySet[Evaluation]:
    rows = without_replaced(judged_evaluations()).exclude(
        submission__origin=Submission.Origin.IMPORTED
    )
    wanted = {"device_id": device, "task_version__task__slug": task}
    return (
        rows.filter(result__isnull=False, **{name: v for name, v in wanted.items() if v})
        .select_related(
            "device", "result", "task_version__task", "submission__agent",
            "submission__author", "submission__language_model",
        )
        .order_by("device_id", "task_version__task__slug", "finished_at", "pk")
    )  # fmt: skip


def _record(evaluation: Evaluation) -> ResultRecord:
    submission, version = evaluation.submission, evaluation.task_version
    result = public_result(evaluation.result.data, version.hidden_names)
    is_correct = evaluation.verdict == Verdict.CORRECT
    model = submission.language_model
    assert evaluation.finished_at is not None, "a judged evaluation has ended"
    return ResultRecord(
        evaluation=str(evaluation.pk),
        submission=str(submission.pk),
        task=version.task.slug,
        task_version=version.number,
        task_digest=version.digest,
        direction=Direction(evaluation.direction),
        device=evaluation.device_id,
        device_kind=DeviceKind(evaluation.device.kind),
        device_name=evaluation.device.name,
        language=Language(submission.language),
        source=submission.source,
        entry=submission.entry,
        files=submission.files,
        source_digest=submission.digest,
        agent=submission.agent.name,
        agent_kind=submission.agent.kind,
        submitter=shown_name(submission.author) if submission.agent.user_id else "",
        language_model=model.name if model else "",
        mode=Mode(evaluation.mode),
        verdict=Verdict(evaluation.verdict),
        reason=result.reason,
        latency_ns=evaluation.latency_ns,
        speedup_best=evaluation.speedup_best,
        unlisted_speedups=result.unlisted_speedups if is_correct else {},
        pending_baselines=result.pending_baselines,
        workloads=tuple(shown_workload(each) for each in result.workloads),
        environment=shown_environment(result.environment),
        entered_at=_text(submission.created_at),
        measured_at=_text(evaluation.finished_at),
    )


def shown_workload(entry: WorkloadResult) -> WorkloadRecord:
    """A public workload without the calls behind its times."""
    return WorkloadRecord(
        name=entry.name,
        parameters=entry.parameters,
        measurement=entry.measurement,
        baselines=entry.baselines,
        errors=entry.errors,
        flops=entry.flops,
        bytes=entry.bytes,
        weight=entry.weight,
        floor_ns=entry.floor_ns,
        claimed_ns=entry.claimed_ns,
    )


def shown_environment(found: Environment) -> Environment:
    """Without what tells of single processes, and of how the host was set up."""
    return replace(found, blocks=(), oracle=None)


def _text(moment: datetime) -> str:
    return moment.isoformat()
