"""The API's view of queues and runners."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Router, Schema

from runs_app.core.queue.runners import RunnerStatus
from runs_app.core.queue.selectors import QueueEntry, queue_overview

router = Router(tags=["queue"])


class QueueEntryOut(Schema):
    """A place in a queue; the ids are null for what you may not see."""

    position: int
    waiting_s: float
    evaluation: UUID | None
    submission: UUID | None
    task: str | None


class RunnerOut(Schema):
    """A runner."""

    name: str
    state: str
    alive: bool
    age_s: float = Field(description="Seconds since its last heartbeat.")
    reason: str
    jail: bool
    version: str


class DeviceQueueOut(Schema):
    """A device with its queue and runners."""

    device: str
    kind: str
    name: str
    depth: int
    reason: str = Field(description="Why no jobs are being taken now; empty if they are.")
    wait_p50_s: float | None
    wait_p95_s: float | None
    waiting: list[QueueEntryOut]
    running: list[QueueEntryOut]
    runners: list[RunnerOut]


@router.get("/queue", response=list[DeviceQueueOut], summary="Queues and runners")
def show_queue(request: HttpRequest) -> list[dict[str, object]]:
    """Answer with every device's queue and runners."""
    return [
        {
            "device": queue.device.slug,
            "kind": queue.device.kind,
            "name": queue.device.name,
            "depth": queue.depth,
            "reason": queue.reason,
            "wait_p50_s": queue.wait_p50_s,
            "wait_p95_s": queue.wait_p95_s,
            "waiting": [_entry(entry) for entry in queue.waiting],
            "running": [_entry(entry) for entry in queue.running],
            "runners": [_runner(status) for status in queue.runners],
        }
        for queue in queue_overview(request.user, timezone.now())
    ]


def _entry(entry: QueueEntry) -> dict[str, object]:
    row = entry.evaluation
    return {
        "position": entry.position,
        "waiting_s": entry.waiting_s,
        "evaluation": row.pk if row else None,
        "submission": row.submission_id if row else None,
        "task": row.task_version.task.slug if row else None,
    }


def _runner(status: RunnerStatus) -> dict[str, object]:
    runner = status.runner
    return {
        "name": runner.name,
        "state": runner.state,
        "alive": status.alive,
        "age_s": status.age_s,
        "reason": runner.reason,
        "jail": runner.jail,
        "version": runner.version,
    }
