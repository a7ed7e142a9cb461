"""The API for other programs' searches: submit a batch of kernels, and ask for their rewards."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Query, Router, Schema, Status
from ninja.errors import HttpError
from pydantic import StrictBool

from gpu_runner.data.verdict import Direction, Mode, Verdict
from runs_app.core.api_body import Body, one_of
from runs_app.core.api_pages import ask_again
from runs_app.core.errors import SubmissionError
from runs_app.core.work.result_state import COMPARED_WITH, compared_with
from runs_app.features.rewards.services import (
    own_evaluations,
    refused_by_audits,
    reward_of,
    seconds_of,
    submit_many,
)
from runs_app.models import Evaluation, Submission
from runs_app.submitting.api import Entry, Files, Problem
from tasks_app.models import TaskVersion
from tasks_app.people import AuthenticatedRequest, Viewer
from tasks_app.selectors import find_task, no_task

router = Router(tags=["submissions"])

MOST = 64
"""Kernels in a request. Chosen: a batch of an RL trainer; their ids still fit into an address."""
_MODES = (Mode.QUICK, Mode.PROFILE, Mode.RANKED)


class RewardKernel(Body):
    """One of the kernels."""

    left_to_services = ("source", "language", "entry", "files")

    source: str = Field(description="The kernel's source.")
    language: str = Field(
        "",
        examples=["cpp"],
        description="cuda, cpp or python; default: the device's language. If it's wrong,"
        " only this kernel is refused.",
    )
    entry: Entry = ""
    files: Files = Field({})


class RewardsIn(Body):
    """Kernels for one task, device and mode. Each becomes a submission."""

    left_to_services = ("kernels",)

    task: str = Field(examples=["vector_add"], description="A task's name, from /tasks.")
    kernels: list[RewardKernel] = Field(min_length=1, max_length=MOST)
    device: str = Field("", examples=["cpu"], description="Same as for a submission.")
    direction: str = Field(
        Direction.FORWARD.value,
        description="forward or backward",
        json_schema_extra=one_of(*Direction),
    )
    mode: str = Field(
        Mode.QUICK.value,
        description="quick, profile or ranked: the modes that give a speedup",
        json_schema_extra=one_of(*_MODES),
    )
    agent: str = Field("", description="Author of the kernels; default: you.")
    model: str = Field("", description="The language model that wrote them, if any.")
    private: StrictBool = Field(True, description="Visible only to you and admins.")


class RewardEntered(Schema):
    """The outcome for one kernel."""

    id: UUID | None = Field(description="The submission; null if the kernel was refused.")
    field: str = Field(description="The field that is wrong; empty if the kernel was accepted.")
    reason: str = Field(description="Why it was refused; empty if it wasn't.")
    later: bool = Field(
        description="Whether it was refused only because of the quota: send it again when other"
        " evaluations have ended."
    )


class RewardsCreated(Schema):
    """The outcome for each kernel, in the order of the request."""

    taken: int = Field(description="How many became submissions.")
    kernels: list[RewardEntered]


class RewardsAsked(Schema):
    """Which rewards to return."""

    ids: list[UUID] = Field(
        [], max_length=MOST, description="Ids of your own submissions: `ids=A&ids=B`."
    )


class RewardOut(Schema):
    """The reward of a submission, from its newest evaluation that isn't an audit."""

    id: UUID
    over: bool = Field(description="Whether its evaluation has ended.")
    verdict: str = Field(
        description="Empty until it is over, or if it was canceled.",
        json_schema_extra=one_of("", *Verdict),
    )
    reward: float | None = Field(
        description="The score of a correct kernel or, without unlisted sizes, its speedup; see"
        " `compared_with`. 0 if the kernel isn't correct, or while its result is in quarantine or"
        " rejected. Null if the kernel isn't to blame, so leave it out of training: the evaluation"
        " isn't over, it was canceled, we failed (SYSTEM_ERROR), or there's no baseline yet."
    )
    compared_with: str = Field(description=COMPARED_WITH)
    reason: str = Field(description="The reason for the verdict or the reward.")
    seconds: float | None = Field(
        description="How many seconds a runner worked on it, including the build. Null until"
        " it is over."
    )
    url: str = Field(description="Its page on this site.")


@router.post(
    "/rewards",
    response={201: RewardsCreated, **dict.fromkeys((401, 404, 409, 422, 429), Problem)},
    summary="Submit up to 64 kernels for rewards",
)
def create_rewards(request: AuthenticatedRequest, payload: RewardsIn) -> Status[dict[str, object]]:
    """Queue kernels for evaluation, each as a submission of its own.

    One refused kernel doesn't affect the others. If your quota runs out in the middle, `taken` says
    how many were accepted, and the rest have `later` set.
    """
    if payload.mode not in _MODES:
        raise SubmissionError("mode", f"{payload.mode!r} is not one of {', '.join(_MODES)}")
    entered = submit_many(
        **payload.dict(exclude={"task", "model"}),
        user=request.user,
        task_version=_version(payload.task, request.user),
        language_model=payload.model,
        origin=Submission.Origin.API,
        now=timezone.now(),
    )
    taken = sum(each.id is not None for each in entered)
    return Status(201, {"taken": taken, "kernels": entered})


@router.get(
    "/rewards",
    response={200: list[RewardOut], **dict.fromkeys((401, 404, 422), Problem)},
    summary="Rewards of your submissions",
)
def show_rewards(
    request: HttpRequest, response: HttpResponse, asked: Query[RewardsAsked]
) -> list[dict[str, object]]:
    """Return the rewards of up to 64 of your own submissions, in the order of `ids`.

    Until all are over, `Retry-After` says how many seconds to wait before you ask again. If you
    send the last `ETag` as `If-None-Match`, you get 304 if nothing has changed.
    """
    if asked.ids and not request.user.is_authenticated:
        raise HttpError(401, "to read rewards, send your token")
    found = own_evaluations(request.user, asked.ids)
    if begun := [each.created_at for each in found if not each.is_over]:
        ask_again(response, max(begun))
    refused = refused_by_audits(found)
    return [_reward(each, request.user, is_refused=each.pk in refused) for each in found]


def _version(slug: str, user: Viewer) -> TaskVersion:
    task = find_task(slug, user)
    if task is None or task.current_version is None:
        raise SubmissionError("task", no_task(slug))
    return task.current_version


def _reward(evaluation: Evaluation, user: Viewer, *, is_refused: bool) -> dict[str, object]:
    reward, reason = reward_of(evaluation, user, is_refused=is_refused)
    return {
        "id": evaluation.submission_id,
        "over": evaluation.is_over,
        "verdict": evaluation.verdict,
        "reward": reward,
        "compared_with": compared_with(evaluation),
        "reason": reason,
        "seconds": seconds_of(evaluation),
        "url": evaluation.submission.get_absolute_url(),
    }
