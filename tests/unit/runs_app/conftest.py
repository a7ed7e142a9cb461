"""Fixtures of the tests about submissions and evaluations."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from runs_app import queues
from runs_app.models import Evaluation
from runs_app.queues import JobState


@dataclass
class Jobs:
    """What was asked of RQ; `states` is what it knows of jobs, by id."""

    enqueued: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    states: dict[str, JobState] = field(default_factory=dict)

    def enqueue(self, evaluation: Evaluation) -> bool:
        """Remember a job."""
        self.enqueued.append(queues.job_id(evaluation))
        return True

    def drop(self, evaluation: Evaluation, attempt: int) -> None:
        """Remember that a job was taken back."""
        self.dropped.append(queues.job_id(evaluation, attempt))

    def state(self, evaluation: Evaluation) -> JobState:
        """Waiting, unless a test says otherwise."""
        return self.states.get(queues.job_id(evaluation), JobState.WAITING)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Stands in for RQ."""
    fake = Jobs()
    for name in ("enqueue", "drop", "state"):
        monkeypatch.setattr(queues, name, getattr(fake, name))
    return fake
