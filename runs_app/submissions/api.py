"""The API's view of submissions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Query, Router, Schema, Status
from pydantic import StrictBool

from gpu_runner.data.verdict import Abi, Direction, Language, Mode, Verdict
from runs_app.api_body import Body, one_of
from runs_app.baselines.selectors import awaited_baselines as baselines_awaited
from runs_app.errors import SubmissionError
from runs_app.integrity.audits import request_audit
from runs_app.integrity.eligibility import Why, eligibilities
from runs_app.integrity.selectors import decision_reason
from runs_app.models import Audited, BoardAudit, Entry, Evaluation, Submission
from runs_app.models import Status as JobStatus
from runs_app.queue.find_device import resolve_device
from runs_app.queue.selectors import waiting_reason as reason_to_wait
from runs_app.submissions.for_entries import submit_for_entry
from runs_app.submissions.identity import identity
from runs_app.submissions.quota import quota as quota_of
from runs_app.submissions.remarks import remark_on
from runs_app.submissions.services import submit
from runs_app.work.access import (
    find_submission,
    public_reason,
    result_documents,
    visible_evaluations,
)
from runs_app.work.board_audit import board_audit
from tasks_app.models import TaskVersion
from tasks_app.people import AuthenticatedRequest, Viewer, shown_name
from tasks_app.selectors import find_task

router = Router(tags=["submissions"])


class Problem(Schema):
    """What is wrong with a request; nothing was stored."""

    field: str = Field(examples=["language"], description="Empty if it is about no single field.")
    reason: str = Field(examples=["'rust' is not one of cuda, cpp"])


class SubmissionIn(Body):
    """A kernel to be evaluated."""

    task: str = Field(examples=["vector_add"], description="A task's name, from /tasks.")
    source: str = Field(
        description="The kernel's source.",
        examples=[
            'extern "C" void vector_add(const float* A, const float* B, float* C, int N)'
            " { for (int i = 0; i < N; ++i) C[i] = A[i] + B[i]; }"
        ],
    )
    language: str = Field(
        examples=["cpp"], description="cuda, cpp or python", json_schema_extra=one_of(*Language)
    )
    abi: str = Field(
        "",
        description="c or torch; the task decides, so it can be left out",
        json_schema_extra=one_of("", *Abi),
    )
    direction: str = Field(
        Direction.FORWARD.value,
        description="forward or backward",
        json_schema_extra=one_of(*Direction),
    )
    device: str = Field(
        "",
        examples=["cpu"],
        description='A device from /queue, or "cuda" for the only CUDA device.',
    )
    mode: str = Field(
        Mode.QUICK.value,
        description="compile, test, quick, profile or ranked; profile is quick, and then a profile",
        json_schema_extra=one_of(*(mode for mode in Mode if mode is not Mode.AUDIT)),
    )
    agent: str = Field("", description="Who wrote the kernel; you, if left out.")
    model: str = Field("", description="The language model that wrote it, if one did.")
    private: StrictBool = Field(False, description="Seen by you and admins only.")


class SubmissionCreated(Schema):
    """Where the new submission is."""

    id: UUID
    url: str = Field(examples=["/submissions/0b7c1f5e-5a0e-4c2f-9a35-2f0c7f2f8a11/"])
    evaluation: UUID
    waiting_reason: str = Field(examples=["next in the queue; a runner is free"])
    remark: str = Field(
        examples=[""],
        description="What its author should know before it is measured: that a Python module only "
        "calls libraries where its task asks for a kernel, or that the source is another agent's.",
    )


class EvaluationOut(Schema):
    """One measurement of the submission."""

    id: UUID
    device: str
    mode: str = Field(json_schema_extra=one_of(*Mode))
    status: str = Field(examples=["FINISHED"], json_schema_extra=one_of(*JobStatus.values))
    verdict: str = Field(
        examples=["CORRECT"],
        description="Empty until status is FINISHED.",
        json_schema_extra=one_of("", *Verdict),
    )
    reason: str
    stage: str
    attempt: int
    waiting_reason: str
    awaited_baselines: str = Field(
        description="Which baselines its result lacks, and when they come; empty if none."
    )
    latency_ns: float | None
    speedup: float | None = Field(description="Against the best baseline of each workload.")
    speedup_eager: float | None
    speedup_compiled: float | None
    hidden_speedup: float | None = Field(
        description="Against eager on the hidden workloads; compare with speedup_eager."
    )
    floor_fraction: float | None
    score: float | None
    eligibility: str = Field(
        description="eligible: it counts on its board; pending: it may come to count; or rejected."
    )
    eligibility_reason: str = Field(description="Why it counts, or does not, in a sentence.")
    quarantine: str = Field(
        description="none, open, cleared or rejected: an open or rejected result counts nowhere."
    )
    quarantine_reason: str = Field(description="Why a person decided so; empty until one did.")
    audited: str = Field(
        description="Of a ranked evaluation: none, waiting, passed, failed, suspicious or"
        " inconclusive. Only passed is verified; failed and suspicious are on no board."
    )
    audited_reason: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: dict[str, Any] | None = Field(description="The whole result, once there is one.")


class SubmissionOut(Schema):
    """A submission with all its evaluations, the newest first."""

    id: UUID
    url: str
    task: str
    task_version: int
    author: str
    agent: str
    model: str
    language: str
    direction: str
    private: bool
    origin: str = Field(
        description="run: measures a candidate; entered: by a run; carried: from another version.",
        json_schema_extra=one_of(*Submission.Origin.values),
    )
    imported_from: str | None = Field(
        description="The site that measured it, if it was imported; null for our own."
    )
    source: str
    created_at: datetime
    evaluations: list[EvaluationOut]


class AuditIn(Body):
    """Which place of a submission is to be audited."""

    device: str = Field("", examples=["cpu"], description="Where its ranked result was measured.")


class AuditCreated(Schema):
    """Where the audit can be followed."""

    evaluation: UUID
    url: str


@router.post(
    "/submissions",
    response={201: SubmissionCreated, **dict.fromkeys((401, 404, 409, 422, 429), Problem)},
    summary="Submit a kernel",
)
def create_submission(
    request: AuthenticatedRequest, response: HttpResponse, payload: SubmissionIn
) -> Status[dict[str, Any]]:
    """Queue a kernel for evaluation; with an entry's token, for that entry."""
    now = timezone.now()
    user = request.user
    submission = _submitted(request, payload, now)
    evaluation = submission.evaluations.get()
    quota = quota_of(user, now)
    response["X-Quota-Limit"] = str(quota.daily_limit)
    response["X-Quota-Remaining"] = str(quota.remaining)
    response["X-Quota-Reset"] = quota.resets_at.isoformat()
    response["Location"] = f"{request.path}/{submission.pk}"
    return Status(
        201,
        {
            "id": submission.pk,
            "url": submission.get_absolute_url(),
            "evaluation": evaluation.pk,
            "waiting_reason": reason_to_wait(evaluation, now),
            "remark": remark_on(submission),
        },
    )


@router.get(
    "/submissions/{submission_id}",
    response={200: SubmissionOut, 404: Problem},
    summary="One submission",
)
def show_submission(
    request: HttpRequest,
    submission_id: str,
    wait: int = Query(  # type: ignore[type-arg]
        0, ge=0, le=60, description="Answer once it is over, after so many seconds at most."
    ),
) -> dict[str, Any]:
    """Answer with a submission, its evaluations and their results."""
    submission = find_submission(identity(submission_id, request.user), request.user)
    if submission is None:
        raise Http404(f"there is no submission {submission_id!r} that you may see")
    return _submission(submission, request.user)


@router.post(
    "/submissions/{submission_id}/audit",
    response={201: AuditCreated, 401: Problem, 403: Problem, 404: Problem, 409: Problem},
    summary="Audit a submission (admins)",
)
def create_audit(
    request: AuthenticatedRequest, response: HttpResponse, submission_id: str, payload: AuditIn
) -> Status[dict[str, Any]]:
    """Queue an audit of a ranked result; the leader of a board gets one without being asked."""
    user = request.user
    submission = find_submission(identity(submission_id, user), user)
    if submission is None:
        raise Http404(f"there is no submission {submission_id!r} that you may see")
    evaluation = request_audit(
        submission=submission,
        device=resolve_device(payload.device, submission.language),
        user=user,
        now=timezone.now(),
    )
    url = f"{submission.get_absolute_url()}?evaluation={evaluation.pk}"
    own = request.path.removesuffix("/audit")
    response["Location"] = f"{own}/status?evaluation={evaluation.pk}"
    return Status(201, {"evaluation": evaluation.pk, "url": url})


def _submitted(request: AuthenticatedRequest, payload: SubmissionIn, now: datetime) -> Submission:
    fields: dict[str, Any] = {
        "source": payload.source,
        "language": payload.language or "(empty)",
        "direction": payload.direction,
        "device": payload.device,
        "mode": payload.mode,
        "agent": payload.agent,
        "language_model": payload.model,
        "now": now,
    }
    bearer = getattr(request, "auth", None)
    if isinstance(bearer, Entry):
        return submit_for_entry(entry=bearer, task=payload.task, **fields)
    return submit(
        user=request.user,
        task_version=_version(payload, request.user),
        private=payload.private,
        origin=Submission.Origin.API,
        **fields,
    )


def _version(payload: SubmissionIn, user: Viewer) -> TaskVersion:
    task = find_task(payload.task, user)
    if task is None or task.current_version is None:
        reason = f"there is no task {payload.task!r}; see /api/v1/tasks"
        raise SubmissionError("task", reason)
    version = task.current_version
    if payload.abi and payload.abi != version.abi:
        raise SubmissionError("abi", f"task {task.slug} has the abi {version.abi}")
    return version


def _submission(submission: Submission, user: Viewer) -> dict[str, Any]:
    return {
        "id": submission.pk,
        "url": submission.get_absolute_url(),
        "task": submission.task_version.task.slug,
        "task_version": submission.task_version.number,
        "author": shown_name(submission.author),
        "agent": submission.agent.name,
        "model": submission.language_model.name if submission.language_model else "",
        "language": submission.language,
        "direction": submission.direction,
        "private": submission.private,
        "origin": submission.origin,
        "imported_from": submission.result_import.site if submission.result_import else None,
        "source": submission.source,
        "created_at": submission.created_at,
        "evaluations": _evaluations(submission, user),
    }


def _evaluations(submission: Submission, user: Viewer) -> list[dict[str, Any]]:
    """All of a submission, the newest first; how many there are costs no query more."""
    found = visible_evaluations(user).filter(submission=submission)
    light = found.defer("task_version__document", "submission__source")
    rows = list(light.prefetch_related("quarantine_case__decisions").order_by("-created_at"))
    whys, documents = eligibilities(found), result_documents(rows, user)
    audited = {row.device_id for row in rows if row.audited != Audited.NONE}
    audits = {device: board_audit(submission, device) for device in audited}
    return [
        _evaluation(row, whys[row.pk], documents.get(row.pk), user)
        | {"audited_reason": _audited_reason(row, audits)}
        for row in rows
    ]


def _audited_reason(row: Evaluation, audits: Mapping[str, BoardAudit | None]) -> str:
    audit = audits.get(row.device_id)
    return audit.reason if audit and row.audited != Audited.NONE else ""


def _evaluation(
    evaluation: Evaluation, why: Why, document: dict[str, Any] | None, user: Viewer
) -> dict[str, Any]:
    same = ("id", "mode", "status", "verdict", "stage", "attempt", "latency_ns", "speedup_eager")
    more = ("speedup_compiled", "hidden_speedup", "floor_fraction", "score")
    trust = ("quarantine", "audited")
    times = ("created_at", "started_at", "finished_at")
    return {
        **{name: getattr(evaluation, name) for name in (*same, *more, *trust, *times)},
        "device": evaluation.device_id,
        "reason": public_reason(evaluation, user),
        "speedup": evaluation.speedup_best,
        "waiting_reason": reason_to_wait(evaluation, timezone.now()),
        "eligibility": why.eligibility.value,
        "eligibility_reason": why.label,
        "quarantine_reason": decision_reason(evaluation),
        "awaited_baselines": baselines_awaited(evaluation, document or {}),
        "result": document,
    }
