"""The checks of task versions that runners make: filters and wrong kernels."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs_app.models.evaluation import Status
from runs_app.models.runner import Device, Runner
from tasks_app.models import TaskVersion

UNDER_WAY = (Status.QUEUED.value, Status.RUNNING.value)
"""Statuses of a check that has not ended."""


class TaskCheck(models.Model):
    """One making of a version's soundness report by a runner of a device.

    `passed` says what the report says, and is None as long as there is none. `reason` says why a
    check that has ended has no report, or why it was tried again; together with `stage`, which is
    what the runner is at, it may name hidden workloads: show both only through
    `runs_app.selectors.check_reason` and `check_stage`. `attempt` counts the retries of an
    infrastructure that failed.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    version = models.ForeignKey(TaskVersion, on_delete=models.CASCADE, related_name="checks")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="task_checks")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="task_checks"
    )
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.QUEUED)
    attempt = models.PositiveIntegerField(default=1)
    last_seq = models.PositiveIntegerField(default=0)  # of the attempt's events, as runners count
    stage = models.TextField(blank=True)
    passed = models.BooleanField(null=True, blank=True)
    reason = models.TextField(blank=True)
    runner = models.ForeignKey(
        Runner, on_delete=models.SET_NULL, null=True, blank=True, related_name="task_checks"
    )
    runner_boot_id = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField()
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    last_event_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """A version is checked once at a time on a device; a check without a report says why."""

        ordering = ("-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("version", "device"),
                condition=Q(status__in=("QUEUED", "RUNNING")),
                name="check_once_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(status="FINISHED", passed__isnull=False)
                | (Q(status="FINISHED", passed__isnull=True) & ~Q(reason=""))
                | (~Q(status="FINISHED") & Q(passed__isnull=True)),
                name="check_finished_with_report_or_reason",
            ),
            models.CheckConstraint(
                condition=Q(status__in=("FINISHED", "CANCELLED"), finished_at__isnull=False)
                | Q(status__in=("QUEUED", "RUNNING"), finished_at__isnull=True),
                name="check_finished_at_iff_over",
            ),
        )
        indexes = (models.Index(fields=("status", "queued_at"), name="check_queue"),)

    def __str__(self) -> str:
        """Version and device."""
        return f"check of {self.version} on {self.device_id}"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to this check."""
        return self.status not in UNDER_WAY
