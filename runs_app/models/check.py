"""The checks of task versions that runners make: filters and wrong kernels."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from gpu_runner.data.event import JobKind
from runs_app.models.runner_job import UNDER_WAY, RunnerJob, over_has_an_end
from tasks_app.models import TaskVersion


class TaskCheck(RunnerJob):
    """One making of a version's soundness report by a runner of a device.

    `passed` says what the report says, and is None as long as there is none. `reason` and `stage`
    may name hidden workloads: show them only through `runs_app.checks.selectors`.
    """

    KIND = JobKind.CHECK

    version = models.ForeignKey(TaskVersion, on_delete=models.CASCADE)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="task_checks"
    )
    passed = models.BooleanField(null=True, blank=True)

    class Meta(RunnerJob.Meta):
        """A version is checked once at a time on a device; a check without a report says why."""

        constraints = (
            models.UniqueConstraint(
                fields=("version", "device"),
                condition=Q(status__in=UNDER_WAY),
                name="check_once_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(status="FINISHED", passed__isnull=False)
                | (Q(status="FINISHED", passed__isnull=True) & ~Q(reason=""))
                | (~Q(status="FINISHED") & Q(passed__isnull=True)),
                name="check_finished_with_report_or_reason",
            ),
            over_has_an_end("check_finished_at_iff_over"),
        )
        indexes = (models.Index(fields=("status", "queued_at"), name="check_queue"),)

    def __str__(self) -> str:
        """Version and device."""
        return f"check of {self.version} on {self.device_id}"
