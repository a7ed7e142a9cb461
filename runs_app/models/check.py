"""The checks of task versions that runners make: filters and wrong kernels."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs_app.models.version_job import VersionJob, over_has_an_end


class TaskCheck(VersionJob):
    """One making of a version's soundness report by a runner of a device.

    `passed` says what the report says, and is None as long as there is none. Show `reason` and
    `stage` only through `checks.selectors.check_reason` and `check_stage`.
    """

    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="task_checks"
    )
    passed = models.BooleanField(null=True, blank=True)

    class Meta(VersionJob.Meta):
        """A version is checked once at a time on a device; a check without a report says why."""

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
            over_has_an_end("check_finished_at_iff_over"),
        )
        indexes = (models.Index(fields=("status", "queued_at"), name="check_queue"),)

    def __str__(self) -> str:
        """Version and device."""
        return f"check of {self.version} on {self.device_id}"
