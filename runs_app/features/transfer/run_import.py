"""Store a run that another site has made: finished, read-only, and with nothing to be done."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID, uuid4, uuid5

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction

from gpu_runner.data.codec import DataError, encode, refuse
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Verdict
from runs_app.core.errors import SubmissionError
from runs_app.core.work import outcome, replaced
from runs_app.core.work.noise import noise_between
from runs_app.features.transfer import faults, run_faults, services
from runs_app.features.transfer.record import IMPORTED, Record, RunFile
from runs_app.models import (
    Candidate,
    Evaluation,
    LanguageModel,
    LanguageModelCall,
    Result,
    Run,
    RunEvent,
    Status,
    Submission,
)
from runs_app.optimiser.candidate_page import votes
from runs_app.optimiser.changes import replayed
from runs_app.optimiser.selectors.confirmation import confirmation_of
from runs_app.optimiser.services.history import load_history
from runs_app.optimiser.services.record import candidate_solution, submission_of
from runs_app.submitting.authors import imported_agent, language_model_of
from runs_app.submitting.shipped import account_of_nobody
from tasks_app.models import TaskVersion

_LINKS = (models.ForeignKey, models.JSONField, models.TextField)  # what is checked elsewhere
_AT_ONCE = 100  # chosen: rows of one statement; prompts are long
M = TypeVar("M", bound=models.Model)


def import_run(*, document: object, now: datetime) -> Run | None:
    """Store the run of an encoded `RunFile`; None if it is here already.

    Raises `DataError` naming the field of whatever is wrong with the file; nothing is stored then.
    """
    file = faults.decode(document, RunFile)
    run_faults.refuse_wrong(file, now)
    key = uuid5(UUID(file.run.id), file.site)  # the same each time
    if Run.objects.filter(pk__in=(key, file.run.id)).exists():
        return None
    try:
        with transaction.atomic():
            return _Storing(file, now).store(key)
    except SubmissionError as error:
        raise DataError(f"run.{error.field}", error.reason) from None
    except IntegrityError as error:
        raise DataError("run", f"contradicts itself: {error}".split("\n", 1)[0]) from None


def _version(run: Record) -> TaskVersion:
    """The version that the run is about; raises `DataError` where this site lacks it."""
    version = services.versions_of([run.task_digest], [run.task]).get(run.task_digest)
    if version is not None:
        refuse(run_faults.misfits(run, version))
        return version
    if not TaskVersion.objects.filter(task__slug=run.task, published_at__isnull=False).exists():
        raise DataError("run.task", f"this site has no task {run.task!r}")
    reason = f"this site has {run.task}, but no version with the digest {run.task_digest[:64]!r}"
    raise DataError("run.task_digest", reason)


class _Storing:
    """The rows of one file, in the order in which they refer to each other."""

    def __init__(self, file: RunFile, now: datetime) -> None:
        self._file, self._told, self._now = file, file.run, now
        self._version = _version(file.run)
        self._ids: dict[str, str] = {}  # here, by what they are in the file

    def store(self, key: UUID) -> Run:
        services.store_results(self._file, self._now)
        self._device = services.device_of(self._file.site, self._told, "run", self._now)
        self._run = self._stored_run(key)
        self._store_calls()
        self._store_candidates()
        self._store_events()
        if self._told.best is not None:
            self._run.best = self._run.candidates.get(number=self._told.best)
            self._run.save(update_fields=["best"])
        _refuse_unreadable(self._run)
        return self._run

    def _stored_run(self, key: UUID) -> Run:
        told, site = self._told, self._file.site
        run = _row(
            Run,
            told,
            "run",
            id=key,
            user=account_of_nobody(services.IMPORT_USER),
            agent=imported_agent(told.agent, told.agent_kind, site, self._now),
            task_version=self._version,
            device=self._device,
            best=None,
            events_stored=len(told.events) + 1,
        )
        run.save(force_insert=True)
        return run

    def _store_calls(self) -> None:
        names = {call.language_model for call in self._told.calls}
        known = {name: language_model_of(name, self._now) for name in names}
        rows = [
            _row(
                LanguageModelCall,
                call,
                f"run.calls[{n}]",
                id=self._id(call.id),
                run=self._run,
                language_model=known[call.language_model],
                told=True,
            )
            for n, call in enumerate(self._told.calls)
        ]
        LanguageModelCall.objects.bulk_create(rows, _AT_ONCE)
        self._calls = {row.number: row for row in rows}

    def _store_candidates(self) -> None:
        rows = []
        for n, told in enumerate(self._told.candidates):
            field = f"run.candidates[{n}]"
            links = {
                "call": self._calls.get(told.call),
                "submission": self._submission(told, field) if told.submission else None,
                "entry": self._entry(told, field) if told.entry else None,
            }
            rows.append(_row(Candidate, told, field, run=self._run, **links))
        Candidate.objects.bulk_create(rows, _AT_ONCE)

    def _entry(self, told: Record, field: str) -> Submission:
        """What entered a candidate; a result that was here before may be anybody's."""
        rows = Submission.objects.filter(imported__result_import__site=self._file.site)
        found = rows.filter(pk=told.entry, source=told.source).first()
        if found is None:
            raise DataError(f"{field}.entry", f"is here already, but isn't from {self._file.site}")
        return found

    def _submission(self, told: Record, field: str) -> Submission:
        """What measured a candidate, and all its evaluations."""
        try:
            solution = candidate_solution(self._run, told.source)
        except DataError as error:
            raise DataError(f"{field}.{error.field}", error.reason) from None
        model = LanguageModel.objects.filter(name=told.model).first()
        made = faults.moment(told.created_at, f"{field}.created_at")
        submission = submission_of(self._run, solution, model, now=made)
        self._ids[told.submission] = str(submission.pk)
        results = []
        for n, each in enumerate(told.evaluations):
            row = self._evaluation(submission, each, f"{field}.evaluations[{n}]")
            if each.result is not None:
                results.append(self._result(row, each))
            row.save(force_insert=True)
        Result.objects.bulk_create(results)
        replaced.settle([submission.pk])
        return submission

    def _evaluation(self, submission: Submission, told: Record, field: str) -> Evaluation:
        row = _row(
            Evaluation,
            told,
            field,
            id=self._id(told.id),
            submission=submission,
            task_version=self._version,
            device=self._device,
            direction=submission.direction,
            queued_at=faults.moment(told.created_at, f"{field}.created_at"),
            queue_place=Urgency.RUNS.place,
        )
        if row.status == Status.FINISHED:
            row.verdict = Verdict.SYSTEM_ERROR.value  # unless there is a result
        return row

    def _result(self, row: Evaluation, told: Record) -> Result:
        result = replace(
            told.result,
            evaluation_id=str(row.pk),
            device=self._device.slug,
            task=self._told.task,
            task_digest=self._told.task_digest,
            solution_digest=row.submission.digest,
        )
        result = services.fitted(result, self._version)
        outcome.apply(row, result, noise_between(self._device, row.mode))
        return Result(evaluation=row, document=encode(result))

    def _store_events(self) -> None:
        rows = []
        for n, told in enumerate(self._told.events):
            payload = encode(told.payload)
            if isinstance(ids := payload.get("row"), dict):
                payload["row"] = {key: self._ids.get(str(each), "") for key, each in ids.items()}
            if told.kind == "started" and self._told.submitter:
                payload["by"] = f"{self._told.submitter} on {self._file.site}"
            rows.append(_row(RunEvent, told, f"run.events[{n}]", run=self._run, payload=payload))
        about = {name: getattr(self._file, name) for name in ("site", "note", "exported_at")}
        rows.append(
            RunEvent(
                run=self._run,
                seq=len(rows) + 1,
                kind=IMPORTED,
                payload={**about, "imported_at": self._now.isoformat(), "run": self._told.id},
                created_at=rows[-1].created_at,
            )
        )
        RunEvent.objects.bulk_create(rows, _AT_ONCE)

    def _id(self, told: str) -> UUID:
        """A new id for a row of the file."""
        key = uuid4()
        self._ids[told] = str(key)
        return key


def _row(model: type[M], told: Record, field: str, /, **others: object) -> M:
    """A row of what a record tells, not yet stored; raises `DataError` for what no column takes."""
    columns = {each.name: each for each in model._meta.concrete_fields}
    values: dict[str, object] = {}
    for name in columns.keys() & vars(told).keys() - others.keys():
        value = getattr(told, name)
        is_moment = isinstance(columns[name], models.DateTimeField) and value is not None
        if isinstance(value, float) and not math.isfinite(value):
            raise DataError(f"{field}.{name}", "must be a finite number")
        values[name] = faults.moment(value, f"{field}.{name}") if is_moment else encode(value)
    row = model(**values, **others)
    try:
        row.clean_fields([name for name, each in columns.items() if isinstance(each, _LINKS)])
    except ValidationError as error:
        name, reasons = next(iter(error.message_dict.items()))
        raise DataError(f"{field}.{name}", reasons[0]) from None
    return row


def _refuse_unreadable(run: Run) -> None:
    """Refuse what no page could show: events that speak of what isn't there, for instance."""
    try:
        deque(replayed(run, 0), maxlen=0)
        load_history(run)
        confirmation_of(run)
        for candidate in run.candidates.all():
            votes(candidate)
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
        reason = f"don't add up to a run: {type(error).__name__} {error}"
        raise DataError("run.events", reason[:200]) from None
