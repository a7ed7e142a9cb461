"""What runners do for a task version apart from any submission."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from runs_app.models.evaluation import Status
from runs_app.models.runner import Device, Runner
from tasks_app.models import TaskVersion

UNDER_WAY = (Status.QUEUED.value, Status.RUNNING.value)
"""Statuses of a job that has not ended."""


def over_has_an_end(name: str) -> models.CheckConstraint:
    """The constraint, of that name, that only a job which is over has an end."""
    return models.CheckConstraint(
        condition=Q(status__in=("FINISHED", "CANCELLED"), finished_at__isnull=False)
        | Q(status__in=("QUEUED", "RUNNING"), finished_at__isnull=True),
        name=name,
    )


class VersionJob(models.Model):
    """One job about a version, for a runner of a device; its outcome is in columns of its kind.

    `reason` says why a job that has ended has no outcome, or why it was tried again; `stage` is
    what its runner is at. Both may name hidden workloads. `attempt` counts the retries of an
    infrastructure that failed.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    version = models.ForeignKey(TaskVersion, on_delete=models.CASCADE)
    device = models.ForeignKey(Device, on_delete=models.PROTECT)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=1)
    last_seq = models.PositiveIntegerField(default=0)  # of the attempt's events, as runners count
    stage = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    runner = models.ForeignKey(Runner, on_delete=models.SET_NULL, null=True, blank=True)
    runner_boot_id = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField()
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    last_event_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """The newest comes first."""

        abstract = True
        ordering = ("-created_at", "-pk")

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to this job."""
        return self.status not in UNDER_WAY
