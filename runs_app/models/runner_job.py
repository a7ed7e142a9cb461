"""What a runner works at: the life that all kinds of its jobs share."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from gpu_runner.data.event import JobKind
from runs_app.models.runner import Device, Runner


class Status(models.TextChoices):
    """Where a job stands in its life; its outcome is in columns of its kind."""

    QUEUED = "QUEUED", "Queued"
    RUNNING = "RUNNING", "Running"
    FINISHED = "FINISHED", "Finished"
    CANCELLED = "CANCELLED", "Cancelled"


UNDER_WAY = (Status.QUEUED.value, Status.RUNNING.value)
"""Statuses of a job that has not ended."""


SPOOL = "spool:"
"""With this and the spool's name begins, in place of a runner's boot, who holds a job."""


def over_has_an_end(name: str) -> models.CheckConstraint:
    """The constraint, of that name, that only a job which is over has an end."""
    return models.CheckConstraint(
        condition=Q(status__in=("FINISHED", "CANCELLED"), finished_at__isnull=False)
        | Q(status__in=UNDER_WAY, finished_at__isnull=True),
        name=name,
    )


class RunnerJob(models.Model):
    """One job for a runner of a device; `runs_app.work.lifecycle` alone changes its status.

    `attempt` counts the retries of an infrastructure that failed. `reason` says why it was tried
    again, or why it ended as it did; `stage` is what its runner is at, or was at last.
    """

    KIND: ClassVar[JobKind]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="%(class)ss")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=1)
    last_seq = models.PositiveIntegerField(default=0)  # of the attempt's events that counted
    stage = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    runner = models.ForeignKey(
        Runner, on_delete=models.SET_NULL, null=True, blank=True, related_name="%(class)ss"
    )
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
    def spool(self) -> str:
        """Name of the spool that has it, for a host that reaches no site; empty for none."""
        is_there = self.status == Status.RUNNING and self.runner_boot_id.startswith(SPOOL)
        return self.runner_boot_id.removeprefix(SPOOL) if is_there else ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to this job."""
        return self.status not in UNDER_WAY
