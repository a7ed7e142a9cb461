"""Queues that admins empty, and what the sensors of runners said."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs_app.models import Device, Runner


class Emptying(models.Model):
    """An admin wants a device's queue emptied; a worker of the site cancels a batch at a time.

    It concerns what was queued up to `created_at`, of which so many jobs were `waiting` then.
    """

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="emptyings")
    parts = models.JSONField()
    reason = models.TextField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField()
    waiting = models.PositiveIntegerField()
    cancelled = models.PositiveIntegerField(default=0)
    moved_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """The newest comes first; a queue is emptied once at a time."""

        ordering = ("-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("device",),
                condition=Q(finished_at__isnull=True),
                name="emptying_one_at_a_time",
            ),
        )

    def __str__(self) -> str:
        return f"{self.device_id}: {self.cancelled} of {self.waiting}"


class RunnerReading(models.Model):
    """What the sensors of a runner's device said at one moment; None where they say nothing."""

    runner = models.ForeignKey(Runner, on_delete=models.CASCADE, related_name="readings")
    at = models.DateTimeField()
    temperature_c = models.FloatField(null=True, blank=True)
    clock_mhz = models.FloatField(null=True, blank=True)
    memory_clock_mhz = models.FloatField(null=True, blank=True)
    power_w = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ("runner", "at")
        indexes = (models.Index(fields=("runner", "at"), name="reading_of_runner"),)

    def __str__(self) -> str:
        return f"{self.runner_id} {self.at:%H:%M}"
