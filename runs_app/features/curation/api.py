"""The API by which programs write tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from ninja import Field, Router, Schema, Status

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.building import build_task
from gpu_runner.data.solution import Solution, code_of
from gpu_runner.data.verdict import Direction, Language
from runs_app.core.api_body import Body, one_of
from runs_app.core.errors import SubmissionError
from runs_app.core.queue.devices import resolve_device
from runs_app.features.curation.checks.dry_run import try_solutions
from runs_app.features.curation.drafts.services import create_draft
from runs_app.models import Device, Evaluation
from runs_app.submitting.api import Entry, Files, Problem
from runs_app.submitting.services import check_fit, solution_for
from tasks_app.errors import CurationError, Faults
from tasks_app.formats.task_writing import write_folder
from tasks_app.models import TaskVersion
from tasks_app.people import AuthenticatedRequest
from tasks_app.publishing.snapshots import snapshot

router = Router(tags=["tasks"])

MOST_KERNELS = 16  # chosen: more at once fill anybody's part of the queue
_FORWARD = Direction.FORWARD.value
_REFUSALS = dict.fromkeys((401, 403, 404, 409, 422, 429), Problem)


class DraftKernel(Body):
    """A kernel for a task that isn't published."""

    language: str = Field(json_schema_extra=one_of(*(each.value for each in Language)))
    source: str
    entry: Entry = ""
    files: Files = Field({})


class DraftIn(Body):
    """A task that isn't published, and kernels to try on it."""

    task: dict[str, Any] = Field(description="A task's document, as `/tasks/NAME` returns it.")
    kernels: list[DraftKernel] = Field(
        [],
        max_length=MOST_KERNELS,
        description="Each becomes a private submission and counts toward your daily limit.",
    )
    device: str = Field("", description="The device to try them on; same as for a submission.")


class DraftOut(Schema):
    """A draft, and its kernels' submissions, in the same order as the kernels."""

    id: UUID
    name: str
    url: str
    submissions: list[UUID]


@router.post("/drafts", response={201: DraftOut, **_REFUSALS}, summary="Create a draft of a task")
def create(request: AuthenticatedRequest, payload: DraftIn) -> Status[dict[str, object]]:
    """Store a task as a draft. Its author checks and proposes it on the draft's page."""
    now = timezone.now()
    with transaction.atomic(), _refused_at("task"):
        files = write_folder(build_task(payload.task))
        draft = create_draft(user=request.user, files=files, now=now)
        version, tried = snapshot(draft=draft, now=now), list[Evaluation]()
        for place, (solution, device) in enumerate(_kernels(payload, version)):
            moment = now + timedelta(microseconds=place)  # pages show them in this order
            tried += try_solutions([solution], version, device, request.user, moment)
    told = {"id": draft.pk, "name": draft.name, "url": draft.get_absolute_url()}
    return Status(201, told | {"submissions": [each.submission_id for each in tried]})


def _kernels(payload: DraftIn, version: TaskVersion) -> list[tuple[Solution, Device]]:
    """What each kernel would run as, and where; raises `SubmissionError` for all that can't."""
    faults, found = Faults(), []
    for place, each in enumerate(payload.kernels):
        own = Faults()
        code = code_of(each.source, each.files)
        device = own.of(resolve_device, payload.device, each.language, code)
        given = (each.source, each.language, _FORWARD, device)
        solution = own.of(solution_for, *given, entry=each.entry, files=each.files)
        if device:
            own.of(check_fit, version, _FORWARD, device)
        if solution and device:
            found.append((solution, device))
        for field, reason in (pair for error in own.found for pair in error.every):
            is_its_own = field in DraftKernel.model_fields
            faults.add(f"kernels.{place}.{field}" if is_its_own else field, reason)
    faults.tell(SubmissionError)
    return found


@contextmanager
def _refused_at(name: str) -> Iterator[None]:
    """Refuse the request's field of this name for what is wrong in it."""
    try:
        yield
    except CurationError as error:
        every = error.every
    except DataError as error:
        every = SubmissionError.about(error).every
    else:
        return
    raise SubmissionError.of((".".join(filter(None, (name, at))), why) for at, why in every)
