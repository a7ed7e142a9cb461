"""Jobs of runners that are about a version of a task: checks, and baselines."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from gpu_runner.data.baselines import BaselineRequest
from gpu_runner.data.check import CheckRequest
from gpu_runner.data.formats.kernelbench import has_own_shape_alone
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Direction
from runs_app.models.runner_job import UNDER_WAY, RunnerJob, over_has_an_end
from tasks_app.models import TaskVersion


class TaskCheck(RunnerJob):
    """One making of a version's soundness report by a runner of a device.

    `passed` says what the report says, and is None as long as there is none. `reason` and `stage`
    may name hidden workloads: show them only through `runs_app.core.checks.selectors`.
    """

    KIND = CheckRequest.KIND
    FINISH = "runs_app.core.checks.services.finish"
    FAILED = Q(passed__isnull=True)
    NEEDS_TRUST = True

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
        return f"check of {self.version} on {self.device_id}"

    def request(self) -> CheckRequest:
        """The task; an imported file that nobody has seen yet is varied first."""
        task = self.version.data
        return CheckRequest(
            check_id=str(self.pk),
            task=task,
            device=self.device_id,
            attempt=self.attempt,
            vary=self.version.published_at is None and has_own_shape_alone(task),
        )


class BaselineMeasurement(RunnerJob):
    """One measurement of all baselines of a version and direction by a runner of a device.

    `report` is an encoded `BaselineReport`, and None as long as there is none. It says nothing of
    hidden workloads that a result would not say; `reason` and `stage` may name them.
    """

    KIND = BaselineRequest.KIND
    FINISH = "runs_app.core.runners.results.finish_baselines"
    FAILED = Q(report__isnull=True)

    version = models.ForeignKey(TaskVersion, on_delete=models.CASCADE)
    direction = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Direction])
    queue_place = models.PositiveSmallIntegerField(default=Urgency.BASELINES.place)
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
        return f"baselines of {self.version} {self.direction} on {self.device_id}"

    def request(self) -> BaselineRequest:
        """The task and the direction."""
        return BaselineRequest(
            measurement_id=str(self.pk),
            task=self.version.data,
            direction=Direction(self.direction),
            device=self.device_id,
            attempt=self.attempt,
        )
