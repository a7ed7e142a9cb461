"""Stands in for RQ where tests ask what was queued."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import Q

from runs_app.core.messaging import orders
from runs_app.core.work import lifecycle
from runs_app.models import Runner, RunnerJob


@dataclass
class Jobs:
    """What was asked of RQ; `missing` are names of jobs that it has lost."""

    enqueued: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)

    def enqueue(self, row: RunnerJob) -> bool:
        """Remember a job."""
        self.enqueued.append(str(orders.name_of(row)))
        return True

    def drop(self, row: RunnerJob, attempt: int) -> None:
        """Remember that a job was taken back."""
        self.dropped.append(str(orders.name_of(row, attempt)))

    def waiting(self, device_slug: str) -> set[str]:
        """The names of all that is queued, but for what a test has taken away."""
        queued = lifecycle.find(Q(device_id=device_slug, status="QUEUED"))
        return {str(orders.name_of(row)) for row in queued} - self.missing

    def tell(self, runner: Runner) -> bool:
        """Remember who was told what is wanted of it."""
        self.told.append(runner.name)
        return True
