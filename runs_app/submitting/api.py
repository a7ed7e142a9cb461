"""The API's view of submissions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Query, Router, Schema, Status
from pydantic import StrictBool

from gpu_runner.data.verdict import Abi, Direction, Language, Mode, Verdict
from runs_app.core.api_body import Body, one_of
from runs_app.core.errors import SubmissionError
from runs_app.core.hooks import Bearer
from runs_app.core.integrity.audits import request_audit
from runs_app.core.queue.devices import resolve_device
from runs_app.core.queue.selectors import waiting_reason as reason_to_wait
from runs_app.core.work.access import get_submission
from runs_app.core.work.result_state import COMPARED_WITH, STATES
from runs_app.models import Status as JobStatus
from runs_app.models import Submission
from runs_app.submitting.api_answers import submission_answer
from runs_app.submitting.identity import identity
from runs_app.submitting.quota import quota as quota_of
from runs_app.submitting.remarks import remark_on
from runs_app.submitting.services import submit
from tasks_app.api_pages import Fault
from tasks_app.errors import Faults
from tasks_app.models import TaskVersion
from tasks_app.people import AuthenticatedRequest, Viewer
from tasks_app.selectors import find_task, no_task

router = Router(tags=["submissions"])


class Problem(Fault):
    """What is wrong with a request; nothing was stored."""

    also: list[Fault] = Field(
        [], description="Other problems with the request; left out if there are none."
    )
    limit: str = Field(
        "",
        examples=["waiting"],
        description="With status 429: the limit that you reached, such as waiting, per_day or "
        "builds_waiting (for compile checks); left out otherwise. The Retry-After header gives "
        "the number of seconds to wait, if known.",
    )


Entry = Annotated[
    str,
    Field(
        examples=[""],
        description="The source file's name, such as kernel.cpp, if there are other files.",
    ),
]
Files = Annotated[
    dict[str, str],
    Field(
        examples=[{}],
        description="Contents of the other files, such as headers or modules, by path relative to "
        "the source. At most 31 files.",
    ),
]
"""Fields of a body that has a kernel of several files."""


class SubmissionIn(Body):
    """A kernel to evaluate."""

    task: str = Field(examples=["vector_add"], description="A task's name, from /tasks.")
    source: str = Field(
        description="The kernel's source.",
        examples=[
            'extern "C" void vector_add(const float* A, const float* B, float* C, int N)'
            " { for (int i = 0; i < N; ++i) C[i] = A[i] + B[i]; }"
        ],
    )
    entry: Entry = ""
    files: Files = Field({})
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
        description='A device from /queue, or "cuda" for the only CUDA device. If left '
        "out, the source decides: a GPU for CUDA, and for Python that imports Triton or uses CUDA.",
    )
    mode: str = Field(
        Mode.QUICK.value,
        description="compile, test, quick, profile or ranked; profile is quick plus a profile",
        json_schema_extra=one_of(*(mode for mode in Mode if mode is not Mode.AUDIT)),
    )
    agent: str = Field("", description="Author of the kernel; default: you.")
    model: str = Field("", description="The language model that wrote the kernel, if any.")
    private: StrictBool = Field(False, description="Visible only to you and admins.")


class SubmissionCreated(Schema):
    """Where to find the new submission."""

    id: UUID
    url: str = Field(examples=["/submissions/0b7c1f5e-5a0e-4c2f-9a35-2f0c7f2f8a11/"])
    evaluation: UUID
    waiting_reason: str = Field(examples=["next in the queue; a runner is free"])
    remark: str = Field(
        examples=[""],
        description=(
            "What the author should know before the kernel is measured: that a Python module "
            "doesn't define its function, that it only calls libraries although its task asks for "
            "a kernel, or that another agent submitted the same source."
        ),
    )


class PlaceOut(Schema):
    """A result's current place on its board."""

    words: str = Field(examples=["3rd of 12 on the H100 board"])
    rank: int | None = Field(
        description="Null while the result is provisional, or if the board shows a better result"
        " from its author and agent."
    )
    tied: bool
    of: int = Field(description="Number of rows on the board.")
    address: str = Field(description="Its row on the board's page.")


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
    waiting_reason: str = Field(
        examples=["still ranking; expect its baselines in about 40 s"],
        description="Why it hasn't started, or why its result is still provisional, and when to"
        " expect a change; otherwise empty.",
    )
    awaited_baselines: str = Field(
        description="Baselines still missing from the result, and when to expect them; empty if"
        " none."
    )
    missing_baselines: dict[str, str] = Field(
        examples=[{"compiled": "this runner has no working torch.compile"}],
        description="For each baseline without a speedup, the reason; only for correct results. The"
        " key is `best` if the task has no baselines.",
    )
    latency_ns: float | None
    state: str = Field(
        description="State of a ranked result: provisional, ranked, verified, tuned (to the "
        "listed sizes), quarantined or rejected; empty for other results.",
        json_schema_extra=one_of("", *(state.name for state in STATES)),
    )
    score: float | None = Field(
        description="Geometric mean of the speedups on listed and on unlisted sizes. Boards rank by"
        " it."
    )
    speedup: float | None = Field(description="Speedup over the best baseline on listed sizes.")
    compared_with: str = Field(description=COMPARED_WITH)
    speedup_eager: float | None
    speedup_compiled: float | None
    unlisted_speedup: float | None = Field(
        description="Speedup over the best baseline on unlisted sizes."
    )
    floor_fraction: float | None
    p_score: float | None
    eligibility: str = Field(
        description="eligible: it counts on its board; pending: it may count later; or rejected."
    )
    eligibility_reason: str = Field(description="Why it counts or doesn't, in one sentence.")
    place: PlaceOut | None = Field(description="Null unless it counts on its board.")
    quarantine: str = Field(
        description="none, open, cleared or rejected: open or rejected results don't count."
    )
    quarantine_reason: str = Field(
        description="The reason for a person's decision; empty until there is one."
    )
    audited: str = Field(
        description="Audit of a ranked evaluation: none, waiting, passed, failed, suspicious or"
        " inconclusive. Only passed means verified; failed and suspicious results are on no board."
    )
    audited_reason: str
    facts: dict[str, object] | None = Field(
        description="What the newest audit found about using the kernel: same_bits, batch_bits,"
        " graph, scratch_bytes and energy_joules, each null if not measured; `said` gives the"
        " reasons."
    )
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    noise: float | None = Field(
        description=(
            "How much the time may differ in another evaluation of the same source, as a share"
            " of the time, with 95 % confidence. Smaller differences are noise. Null unless"
            " the result is correct."
        )
    )
    bottleneck: str = Field(description="What limits the kernel; empty without a profile.")
    result: dict[str, object] | None = Field(
        description="The result, once it exists, without the parts in `left_out`. For each mode"
        " and device, only the newest evaluation has one; with `raw=true`, all do."
    )


class SubmissionOut(Schema):
    """A submission with all its evaluations, newest first."""

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
        description="run: measures a run's candidate; entered: by a run; carried: from another"
        " version.",
        json_schema_extra=one_of(*Submission.Origin.values),
    )
    imported_from: str | None = Field(
        description="The site that measured it, if it was imported; null for our own."
    )
    source: str
    entry: str = Field(description="The source file's name, if there are other files.")
    files: dict[str, str] = Field(description="Contents of the other files, by name.")
    created_at: datetime
    evaluations: list[EvaluationOut]
    left_out: list[str] = Field(
        examples=[["stages", "environment", "workloads.processes", "build.log"]],
        description="Parts of each `result` that are left out, or cut to their most important"
        " lines. `raw=true` shows everything, including the times and seeds of all calls, what the"
        " outside clock saw, the host's state, and the stages' times.",
    )


class AnswerIn(Schema):
    """How much of a submission to return."""

    raw: bool = Field(
        False, description="Include the parts that results leave out; see `left_out`."
    )


class AuditIn(Body):
    """Which ranked result of a submission to audit."""

    device: str = Field("", examples=["cpu"], description="The device on which it was measured.")


class AuditCreated(Schema):
    """Where to follow the audit."""

    evaluation: UUID
    url: str


@router.post(
    "/submissions",
    response={201: SubmissionCreated, **dict.fromkeys((401, 404, 409, 422, 429), Problem)},
    summary="Submit a kernel",
)
def create_submission(
    request: AuthenticatedRequest, response: HttpResponse, payload: SubmissionIn
) -> Status[dict[str, object]]:
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
    request: HttpRequest, submission_id: str, wanted: Query[AnswerIn]
) -> dict[str, object]:
    """Return a submission, its evaluations and their results."""
    submission = get_submission(identity(submission_id, request.user), request.user)
    return submission_answer(submission, request.user, raw=wanted.raw)


@router.post(
    "/submissions/{submission_id}/audit",
    response={201: AuditCreated, 401: Problem, 403: Problem, 404: Problem, 409: Problem},
    summary="Audit a submission (admins)",
)
def create_audit(
    request: AuthenticatedRequest,
    response: HttpResponse,
    submission_id: str,
    payload: AuditIn = AuditIn.left_out(),
) -> Status[dict[str, object]]:
    """Queue an audit of a ranked result; the leader of a board gets one automatically."""
    user = request.user
    submission = get_submission(identity(submission_id, user), user)
    evaluation = request_audit(
        submission=submission,
        device=resolve_device(payload.device, submission.language, submission.solution.code),
        user=user,
        now=timezone.now(),
    )
    url = f"{submission.get_absolute_url()}?evaluation={evaluation.pk}"
    own = request.path.removesuffix("/audit")
    response["Location"] = f"{own}/status?evaluation={evaluation.pk}"
    return Status(201, {"evaluation": evaluation.pk, "url": url})


def _submitted(request: AuthenticatedRequest, payload: SubmissionIn, now: datetime) -> Submission:
    fields: dict[str, Any] = payload.dict(exclude={"task", "abi", "model", "private"})
    fields["language"] = payload.language or "(empty)"
    fields |= {"language_model": payload.model, "now": now}
    bearer = getattr(request, "auth", None)
    if isinstance(bearer, Bearer):
        return bearer.submit(task=payload.task, **fields)
    faults = Faults()
    return submit(
        user=request.user,
        task_version=faults.of(_version, payload, request.user),
        faults=faults,
        private=payload.private,
        origin=Submission.Origin.API,
        **fields,
    )


def _version(payload: SubmissionIn, user: Viewer) -> TaskVersion:
    task = find_task(payload.task, user)
    if task is None or task.current_version is None:
        raise SubmissionError("task", no_task(payload.task))
    version = task.current_version
    if payload.abi and payload.abi != version.abi:
        raise SubmissionError("abi", f"task {task.slug} uses the ABI {version.abi}")
    return version
