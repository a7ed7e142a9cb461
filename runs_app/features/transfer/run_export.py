"""From a run that is over to a file: what its pages show everybody, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlsplit

from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import DeviceKind, Direction, Mode
from runs_app.features.transfer.export import exported, shown_environment, shown_workload
from runs_app.features.transfer.run_record import (
    CallRecord,
    CandidateRecord,
    EvaluationRecord,
    EventRecord,
    Record,
    RunFile,
    RunRecord,
    told,
)
from runs_app.models import UNDER_WAY, Candidate, Evaluation, LanguageModel, Run
from runs_app.optimiser.disclosure import public_call, public_candidate
from tasks_app.disclosure import public_payload, public_result, public_text
from tasks_app.people import shown_name

T = TypeVar("T")
_MAIL = re.compile(r"\S@\S")


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
        return "is not over: stop it, or wait until nothing of it is under way"
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
                result=_result(each.result.data, hidden) if hasattr(each, "result") else None,
            )
            for each in sorted(evaluations, key=lambda each: (each.created_at, each.pk))
        ),
    )


def _result(stored: EvaluationResult, hidden: Collection[str]) -> EvaluationResult:
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
