"""The API's small views of submissions: one's own, where one stands, and calling one off."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Query, Schema
from ninja.errors import HttpError

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.api_body import Body, one_of
from runs_app.core.api_pages import ask_again, newest_first
from runs_app.core.errors import SubmissionError
from runs_app.core.hooks import Bearer
from runs_app.core.integrity.board_place import board_place
from runs_app.core.integrity.eligibility import Why, eligibility
from runs_app.core.queue.selectors import waiting_reason
from runs_app.core.work.access import (
    asked_for,
    get_submission,
    public_reason,
    standing_of,
    visible_evaluations,
)
from runs_app.core.work.result_state import COMPARED_WITH, STATES, compared_with, result_state
from runs_app.models import Evaluation, Status, Submission
from runs_app.submitting.api import PlaceOut, Problem, router
from runs_app.submitting.api_answers import listed
from runs_app.submitting.identity import identity
from runs_app.submitting.remarks import hint_of
from runs_app.submitting.services import cancel
from tasks_app.people import AuthenticatedRequest, Viewer
from tasks_app.selectors import known_task, no_task

__all__ = ["router"]

_LONGEST_REASON = 500  # chosen: a cause with what reproduces it; the submission has all of it
_LINK = {"responses": {200: {"headers": {"Link": {"schema": {"type": "string"}}}}}}


class LatestOut(Schema):
    """The newest evaluation that isn't an audit, in brief."""

    device: str
    mode: str = Field(json_schema_extra=one_of(*Mode))
    status: str = Field(json_schema_extra=one_of(*Status.values))
    verdict: str = Field(
        description="Empty until status is FINISHED.", json_schema_extra=one_of("", *Verdict)
    )
    quarantine: str = Field(
        description="none, open, cleared or rejected; the submission lists the suspicions."
    )
    latency_ns: float | None
    state: str = Field(
        description="State of a ranked result, as in the submission; empty for other results.",
        json_schema_extra=one_of("", *(state.name for state in STATES)),
    )
    score: float | None = Field(
        description="The figure that boards rank it by, if it is a ranked result."
    )
    speedup: float | None = Field(description="Speedup over the best baseline on listed sizes.")
    compared_with: str = Field(description=COMPARED_WITH)


class StatusOut(LatestOut):
    """The progress of the newest evaluation that isn't an audit; about 1 KB."""

    submission: UUID
    evaluation: UUID
    url: str = Field(description="Its web page, for people.")
    task: str
    over: bool = Field(description="Whether the evaluation has ended.")
    reason: str = Field(
        description="At most 500 characters, ending in “…” if it was cut; the submission has the"
        " full text."
    )
    stage: str
    attempt: int
    events: int = Field(description="Number of the newest event.")
    waiting_reason: str
    created_at: datetime
    finished_at: datetime | None


class RankedOut(Schema):
    """The ranked evaluation that stands for a submission, on its page as on boards."""

    evaluation: UUID
    verdict: str = Field(json_schema_extra=one_of(*Verdict))
    state: str = Field(description="As in the submission.")
    score: float | None
    compared_with: str = Field(description=COMPARED_WITH)
    place: PlaceOut | None = Field(description="Null unless it counts on its board.")


class ShownStatus(StatusOut):
    """The status of one evaluation, and the score and place of the ranked one."""

    ranked: RankedOut | None = Field(
        description="The latest ranked evaluation that ended; null if there is none."
    )


class OwnListed(Schema):
    """One of your submissions."""

    id: UUID
    task: str
    agent: str
    language: str
    created_at: datetime
    latest: LatestOut | None = Field(description="Its newest evaluation that isn't an audit.")


class OwnSubmission(OwnListed):
    """One of your submissions, with `fields=all`."""

    url: str
    task_version: int
    model: str
    direction: str
    private: bool
    origin: str = Field(json_schema_extra=one_of(*Submission.Origin.values))
    latest: StatusOut | None = Field(description="Its `waiting_reason` is always empty here.")


class OwnFilters(Schema):
    """Which of your submissions to return; all parameters are optional."""

    task: str = ""
    agent: str = ""
    fields: Literal["", "all"] = Field(
        "", description="all: also return addresses, reasons and more."
    )
    limit: int = Field(10, ge=1, le=200)
    after: str = Field(
        "", description="Id of the last submission that you have; see the Link header."
    )


class StatusIn(Schema):
    """The evaluation that you're asking about."""

    evaluation: UUID | None = Field(None, description="An evaluation's id; default: the newest.")


class CancelIn(Body):
    """Which evaluation to cancel."""

    evaluation: UUID | None = Field(None, description="An evaluation's id; default: the newest.")


@router.get(
    "/submissions",
    response={200: list[OwnSubmission] | list[OwnListed], 401: Problem, 422: Problem},
    summary="Your own submissions, newest first",
    openapi_extra=_LINK,
)
def list_own(
    request: HttpRequest, response: HttpResponse, filters: Query[OwnFilters]
) -> list[OwnListed]:
    """Return the submissions of the token's owner, without run candidates. With an entry's token,
    return the entry's submissions.
    """
    user = request.user
    if not user.is_authenticated:
        raise HttpError(401, "to list your own submissions, send your token")
    rows = Submission.objects.filter(author_id=user.pk, run=None)
    rows = rows.select_related("task_version__task", "agent", "language_model")
    if isinstance(bearer := getattr(request, "auth", None), Bearer):
        rows = bearer.own(rows)
    if filters.task:
        if (task := known_task(filters.task, user)) is None:
            raise SubmissionError("task", no_task(filters.task))
        rows = rows.filter(task_version__task=task)
    if filters.agent:
        rows = rows.filter(agent__name=filters.agent)
    found = newest_first(rows, request, response, after=filters.after, limit=filters.limit)
    latest = latest_evaluations(found, user)
    own = ((row, latest.get(row.pk)) for row in found)
    schema = OwnSubmission if filters.fields else OwnListed
    told = (listed(row) | {"latest": of and _status(of, user, "")} for row, of in own)
    return [schema.model_validate(each) for each in told]


@router.get(
    "/submissions/{submission_id}/status",
    response={200: ShownStatus, 404: Problem, 422: Problem},
    summary="A submission's status",
)
def show_status(
    request: HttpRequest, response: HttpResponse, submission_id: str, wanted: Query[StatusIn]
) -> dict[str, object]:
    """Return the state of one evaluation.

    Until it ends, `Retry-After` says how many seconds to wait before you ask again. If you send
    the last `ETag` as `If-None-Match`, you get 304 if nothing has changed.
    """
    found = _evaluation(submission_id, wanted.evaluation, request.user)
    if not found.is_over:
        ask_again(response, found.created_at)
    state = _status(found, request.user, waiting_reason(found, timezone.now()))
    reason = f"{state['reason']} {hint_of(found, found.submission)}".strip()
    return state | {"reason": reason, "ranked": _ranked(found, request.user)}


@router.post(
    "/submissions/{submission_id}/cancel",
    response={200: StatusOut, **dict.fromkeys((401, 403, 404, 409, 422), Problem)},
    summary="Cancel a submission's evaluation",
)
def cancel_evaluation(
    request: AuthenticatedRequest, submission_id: str, payload: CancelIn = CancelIn.left_out()
) -> dict[str, object]:
    """Take one of your evaluations out of the queue, or stop it. The default is the newest
    that isn't an audit.

    This frees a place in the queue, but a canceled evaluation counts toward the daily limit.
    """
    found = _evaluation(submission_id, payload.evaluation, request.user)
    cancel(evaluation=found, user=request.user, now=timezone.now())
    found.refresh_from_db()
    return _status(found, request.user, "")


def _ranked(evaluation: Evaluation, user: Viewer) -> dict[str, object] | None:
    """What stands for its submission, if that is ranked."""
    rows = visible_evaluations(user).filter(submission=evaluation.submission_id)
    found = standing_of(asked_for(rows.filter(mode=Mode.RANKED.value)))
    if found is None or not found.verdict:
        return None
    why = eligibility(found)
    return {
        "evaluation": found.pk,
        "verdict": found.verdict,
        "state": state.name if (state := result_state(found)) else "",
        "score": found.score,
        "compared_with": compared_with(found),
        "place": asdict(board_place(found, user)) if why is Why.COUNTS else None,
    }


def _evaluation(submission_id: str, wanted: UUID | None, user: Viewer) -> Evaluation:
    """That evaluation of a submission, or the newest that is no audit; raises `Http404`."""
    submission = get_submission(identity(submission_id, user), user)
    rows = visible_evaluations(user).filter(submission=submission)
    found = (rows.filter(pk=wanted) if wanted else asked_for(rows)).first()
    if found is None:
        raise Http404("This submission has no such evaluation.")
    return found


def latest_evaluations(submissions: list[Submission], user: Viewer) -> dict[UUID, Evaluation]:
    """The newest evaluation of each submission, by the submission's id: one query."""
    newest = asked_for(Evaluation.objects.filter(submission=OuterRef("pk"))).values("pk")[:1]
    wanted = (
        Submission.objects.filter(pk__in=[row.pk for row in submissions])
        .order_by()
        .values_list(Subquery(newest), flat=True)
    )
    rows = visible_evaluations(user).filter(pk__in=list(wanted))
    return {row.submission_id: row for row in rows}


def _cut(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"


def _status(evaluation: Evaluation, user: Viewer, waiting: str) -> dict[str, object]:
    same = ("mode", "status", "verdict", "stage", "attempt", "latency_ns", "score", "created_at")
    return {
        **{name: getattr(evaluation, name) for name in (*same, "quarantine")},
        "submission": evaluation.submission_id,
        "evaluation": evaluation.pk,
        "url": evaluation.submission.get_absolute_url(),
        "task": evaluation.task_version.task.slug,
        "device": evaluation.device_id,
        "over": evaluation.is_over,
        "reason": _cut(public_reason(evaluation, user)),
        "events": evaluation.events_stored,
        "waiting_reason": waiting,
        "state": state.name if (state := result_state(evaluation)) else "",
        "speedup": evaluation.speedup_best,
        "compared_with": compared_with(evaluation),
        "finished_at": evaluation.finished_at,
    }
