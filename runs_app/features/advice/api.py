"""The API's view of what language models say of tasks."""

from __future__ import annotations

from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema

from runs_app.features.advice.models import TaskJudgement
from tasks_app.api_pages import MOST_LISTED, link_next
from tasks_app.selectors import find_task, no_task

router = Router(tags=["tasks"])


class VerdictOut(Schema):
    """A language model's verdict on a task by one criterion."""

    criterion: str = Field(examples=["redundancy"])
    flagged: bool
    reason: str


class JudgementOut(Schema):
    """One language model's advice on a task. It doesn't block anything."""

    model: str = Field(alias="call.language_model.name")
    served_by: str = Field(
        alias="call.served_by",
        description="The language model's name, as reported by its endpoint.",
    )
    verdicts: list[VerdictOut] = Field(
        description="Empty while the call is running, or if there is a problem."
    )
    problem: str = Field(description="Why there is no verdict; empty if there is one.")
    cost_usd: float | None = Field(
        alias="call.cost_usd", description="Null if the language model's price isn't known."
    )
    tokens_in: int = Field(alias="call.tokens_in")
    tokens_out: int = Field(alias="call.tokens_out")
    created_at: datetime


@router.get(
    "/tasks/{slug}/judgements",
    response=list[JudgementOut],
    summary="What language models say about a task",
)
def list_judgements(
    request: HttpRequest,
    response: HttpResponse,
    slug: str,
    limit: int = Query(20, ge=1, le=MOST_LISTED),  # type: ignore[type-arg]
    after: int | None = Query(  # type: ignore[type-arg]
        None, ge=1, lt=2**31, description="Id of the last one that you have; see the Link header."
    ),
) -> list[TaskJudgement]:
    """Return what language models said about the task's current version, newest first."""
    task = find_task(slug, request.user)
    if task is None:
        raise Http404(no_task(slug))
    rows = TaskJudgement.objects.filter(version=task.current_version)
    if after is not None:
        rows = rows.filter(pk__lt=after)
    found = list(rows.select_related("call__language_model").order_by("-pk")[: limit + 1])
    if len(found) > limit:
        link_next(request, response, found[limit - 1].pk)
    return found[:limit]
