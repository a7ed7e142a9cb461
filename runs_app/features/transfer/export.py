"""From results on boards, or a run that is over, to a file: what everybody may see, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import fields, replace
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import QuerySet

from gpu_runner.data.codec import DataError
from gpu_runner.data.environment import Environment
from gpu_runner.data.evaluation import EvaluationResult, WorkloadResult
from gpu_runner.data.verdict import DeviceKind, Direction, Language, Mode, Verdict
from runs_app.core.integrity.eligibility import judged_evaluations, without_replaced
from runs_app.features.transfer.record import (
    CallRecord,
    CandidateRecord,
    EvaluationRecord,
    EventRecord,
    Record,
    ResultFile,
    ResultRecord,
    RunFile,
    RunRecord,
    WorkloadRecord,
    told,
)
from runs_app.models import UNDER_WAY, Agent, Candidate, Evaluation, LanguageModel, Run, Submission
from runs_app.optimiser.disclosure import public_call, public_candidate
from tasks_app.disclosure import public_payload, public_result, public_text
from tasks_app.people import shown_name

_MAIL = re.compile(r"\S@\S")


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
    agent = submission.agent
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
        agent=_public(agent.name, agent),
        agent_kind=agent.kind,
        submitter=_public(shown_name(submission.author) if agent.user_id else "", agent),
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


def _public(name: str, agent: Agent) -> str:
    """The name, or a neutral one for the agent if the name could be an e-mail address."""
    return f"anonymous-{agent.pk}" if _MAIL.search(name) else name


def shown_workload(entry: WorkloadResult) -> WorkloadRecord:
    """A listed workload without the calls behind its times."""
    names = (each.name for each in fields(WorkloadRecord))
    return WorkloadRecord(**{name: getattr(entry, name) for name in names})


def shown_environment(found: Environment) -> Environment:
    """Without what tells of single processes, and of how the host was set up."""
    return replace(found, blocks=(), oracle=None)


def _text(moment: datetime) -> str:
    return moment.isoformat()


T = TypeVar("T")


def exported_run(run: Run, *, site: str, note: str, now: datetime) -> tuple[RunFile, list[str]]:
    """The file, and a line for each result of its entries that was left out, as in `exported`.

    Raises `DataError` for a run that can't leave.
    """
    if reason := _refusal(run):
        raise DataError("run", reason)
    rows = run.candidates.select_related("call", "submission").order_by("number")
    candidates = list(rows.prefetch_related("submission__evaluations__result"))
    entries = [each.entry_id for each in candidates if each.entry_id]
    file, left_out = exported(site=site, note=note, now=now, submissions=entries)
    known = {result.submission for result in file.results}
    record = _run(run, tuple(_candidate(run, each, known) for each in candidates))
    moment = file.exported_at
    made = RunFile(site=site, note=note, exported_at=moment, results=file.results, run=record)
    return made, left_out


def _refusal(run: Run) -> str:
    """Why a run stays here; empty if it may leave."""
    if run.device.imported_from:
        return f"was imported: only {run.device.imported_from} can export it"
    if run.private:
        return "is private"
    if _MAIL.search(run.agent.name):
        return f"is by {run.agent.name!r}, which could be an e-mail address: rename that agent"
    waits = Evaluation.objects.filter(submission__run=run, status__in=UNDER_WAY).exists()
    if not run.is_over or waits or run.calls.filter(told=False).exists():
        return "is not over: stop it, or wait until it has ended"
    return ""


def _run(run: Run, candidates: tuple[Record, ...]) -> Record:
    hidden = run.task_version.hidden_names
    calls = run.calls.select_related("language_model").order_by("number")
    started_by, addresses = shown_name(run.user), _addresses()
    return told(
        RunRecord,
        run,
        id=str(run.pk),
        name=public_text(run.name, hidden),
        reason=_without(public_text(run.reason, hidden), addresses),
        task=run.task_version.task.slug,
        task_version=run.task_version.number,
        task_digest=run.task_version.digest,
        direction=Direction(run.direction),
        device=run.device_id,
        device_kind=DeviceKind(run.device.kind),
        device_name=run.device.name,
        agent=run.agent.name,
        agent_kind=run.agent.kind,
        submitter="" if _MAIL.search(started_by) else started_by,
        best=run.best.number if run.best else None,
        calls=tuple(
            told(
                CallRecord,
                public_call(call, hidden),
                id=str(call.pk),
                language_model=call.language_model.name,
                error=_without(public_text(call.error, hidden), addresses),
                problem=_without(public_text(call.problem, hidden), addresses),
            )
            for call in calls
        ),
        candidates=candidates,
        events=tuple(
            told(EventRecord, row, payload=_without(public_payload(row.payload, hidden), addresses))
            for row in run.events.order_by("seq")
        ),
    )


def _candidate(run: Run, row: Candidate, known: Collection[str]) -> Record:
    """known: the submissions whose results go with the run."""
    hidden = run.task_version.hidden_names
    submission = row.submission
    evaluations = submission.evaluations.all() if submission else ()
    return told(
        CandidateRecord,
        public_candidate(row, hidden),
        call=row.call.number if row.call else None,
        submission=str(submission.pk) if submission else "",
        entry=str(row.entry_id) if str(row.entry_id) in known else "",
        evaluations=tuple(
            told(
                EvaluationRecord,
                each,
                id=str(each.pk),
                mode=Mode(each.mode),
                reason=public_text(each.reason, hidden),
                must_beat_ns=public_payload(each.must_beat_ns, hidden),
                result=_run_result(each.result.data, hidden) if hasattr(each, "result") else None,
            )
            for each in sorted(evaluations, key=lambda each: (each.created_at, each.pk))
        ),
    )


def _run_result(stored: EvaluationResult, hidden: Collection[str]) -> EvaluationResult:
    """The public result, without the calls behind its times and what tells of the host's set-up."""
    result = public_result(stored, hidden)
    return replace(
        result,
        workloads=tuple(shown_workload(each).result for each in result.workloads),
        environment=shown_environment(result.environment),
        loaded=(),
    )


def _addresses() -> list[str]:
    """Where this site's language models are called."""
    urls = LanguageModel.objects.exclude(base_url="").values_list("base_url", flat=True)
    return [each for url in urls for each in (url, urlsplit(url).netloc) if each]


def _without(value: T, addresses: Collection[str]) -> T:
    """A JSON value without these addresses."""
    text = json.dumps(value)
    for address in addresses:
        text = text.replace(json.dumps(address)[1:-1], "the endpoint")
    found: T = json.loads(text)
    return found
