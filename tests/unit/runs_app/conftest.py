"""Fixtures of the tests about submissions and evaluations."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from runs_app import queues
from runs_app.models import Evaluation
from runs_app.queues import JobState, JobView


@dataclass
class Jobs:
    """What was asked of RQ; `states` is what it knows of jobs, by id."""

    enqueued: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    states: dict[str, JobView] = field(default_factory=dict)

    def enqueue(self, evaluation: Evaluation) -> bool:
        """Remember a job."""
        self.enqueued.append(queues.job_id(evaluation))
        return True

    def drop(self, evaluation: Evaluation, attempt: int) -> None:
        """Remember that a job was taken back."""
        self.dropped.append(queues.job_id(evaluation, attempt))

    def waiting_jobs(self, device_slug: str) -> set[str]:
        """Every queued evaluation's job that a test has not given another state."""
        queued = Evaluation.objects.filter(device_id=device_slug, status="QUEUED")
        return {queues.job_id(row) for row in queued} - set(self.states)

    def look(self, evaluation: Evaluation) -> JobView:
        """Waiting, unless a test says otherwise."""
        return self.states.get(queues.job_id(evaluation), JobView(JobState.WAITING))


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Stands in for RQ."""
    fake = Jobs()
    for name in ("enqueue", "drop", "look", "waiting_jobs"):
        monkeypatch.setattr(queues, name, getattr(fake, name))
    return fake
