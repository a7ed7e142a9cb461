"""Stands in for RQ where tests ask what was queued."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import Q

from runs_app.messaging import queues
from runs_app.messaging.queues import JobState, JobView
from runs_app.models import RunnerJob
from runs_app.work import lifecycle


@dataclass
class Jobs:
    """What was asked of RQ; `states` is what it knows of jobs, by id."""

    enqueued: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    states: dict[str, JobView] = field(default_factory=dict)

    def enqueue(self, row: RunnerJob) -> bool:
        """Remember a job."""
        self.enqueued.append(queues.job_id(row))
        return True

    def drop(self, row: RunnerJob, attempt: int) -> None:
        """Remember that a job was taken back."""
        self.dropped.append(queues.job_id(row, attempt))

    def waiting_jobs(self, device_slug: str) -> set[str]:
        """The job of all that is queued, unless a test has given it another state."""
        queued = lifecycle.find(Q(device_id=device_slug, status="QUEUED"))
        return {queues.job_id(row) for row in queued} - set(self.states)

    def look(self, row: RunnerJob) -> JobView:
        """Waiting, unless a test says otherwise."""
        return self.states.get(queues.job_id(row), JobView(JobState.WAITING))
