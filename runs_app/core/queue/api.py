"""The API's view of queues and runners."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Query, Router, Schema

from runs_app.core.queue.selectors import DeviceQueue, QueueEntry, queue_overview

router = Router(tags=["queue"])


class QueueEntryOut(Schema):
    """A place in a queue; the ids are null if you can't see the job."""

    position: int
    waiting_s: float
    evaluation: UUID | None
    submission: UUID | None
    task: str | None

    @staticmethod
    def resolve_evaluation(entry: QueueEntry) -> UUID | None:
        """Its id."""
        return entry.evaluation.pk if entry.evaluation else None

    @staticmethod
    def resolve_submission(entry: QueueEntry) -> UUID | None:
        """The id of the submission being evaluated."""
        return entry.evaluation.submission_id if entry.evaluation else None

    @staticmethod
    def resolve_task(entry: QueueEntry) -> str | None:
        """Its slug."""
        return entry.evaluation.task_version.task.slug if entry.evaluation else None


class RunnerOut(Schema):
    """A runner."""

    name: str = Field(alias="runner.name")
    state: str = Field(alias="runner.state")
    alive: bool
    age_s: float = Field(description="Seconds since its last heartbeat.")
    reason: str = Field(alias="runner.reason")
    jail: bool = Field(alias="runner.jail")
    version: str = Field(alias="runner.version")


class DeviceQueueOut(Schema):
    """A device with its queue and runners."""

    device: str = Field(alias="device.slug")
    kind: str = Field(alias="device.kind")
    name: str = Field(alias="device.name")
    depth: int
    reason: str = Field(description="Why no runner is taking jobs now; empty if one is.")
    wait_p50_s: float | None
    wait_p95_s: float | None
    waiting: list[QueueEntryOut] = Field(description="The first jobs in the queue; see `limit`.")
    left_out: int = Field(description="How many more jobs are waiting.")
    running: list[QueueEntryOut]
    runners: list[RunnerOut]

    @staticmethod
    def resolve_left_out(queue: DeviceQueue) -> int:
        """How many waiting jobs the list leaves out."""
        return max(queue.depth - len(queue.waiting), 0)


@router.get("/queue", response=list[DeviceQueueOut], summary="Queues and runners")
def show_queue(
    request: HttpRequest,
    limit: int = Query(  # type: ignore[type-arg]
        10, ge=1, le=100, description="Maximum number of waiting jobs to list for each device."
    ),
) -> list[DeviceQueue]:
    """Return every device's queue and runners."""
    return queue_overview(request.user, timezone.now(), limit)
