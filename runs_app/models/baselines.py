"""The measurements of a task's baselines that runners make apart from any kernel."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from gpu_runner.data.event import JobKind
from gpu_runner.data.verdict import Direction
from runs_app.models.runner_job import UNDER_WAY, RunnerJob, over_has_an_end
from tasks_app.models import TaskVersion


class BaselineMeasurement(RunnerJob):
    """One measurement of all baselines of a version and direction by a runner of a device.

    `report` is an encoded `BaselineReport`, and None as long as there is none. It says nothing of
    hidden workloads that a result would not say; `reason` and `stage` may name them.
    """

    KIND = JobKind.BASELINES

    version = models.ForeignKey(TaskVersion, on_delete=models.CASCADE)
    direction = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Direction])
    report = models.JSONField(null=True, blank=True)

    class Meta(RunnerJob.Meta):
        """Measured once at a time; a measurement without a report says why."""

        constraints = (
            models.UniqueConstraint(
                fields=("version", "device", "direction"),
                condition=Q(status__in=UNDER_WAY),
                name="baselines_once_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(status="FINISHED", report__isnull=False)
                | (Q(report__isnull=True) & (~Q(status="FINISHED") | ~Q(reason=""))),
                name="baselines_finished_with_report_or_reason",
            ),
            over_has_an_end("baselines_finished_at_iff_over"),
        )
        indexes = (models.Index(fields=("status", "queued_at"), name="baselines_queue"),)

    def __str__(self) -> str:
        """Version, direction and device."""
        return f"baselines of {self.version} {self.direction} on {self.device_id}"
