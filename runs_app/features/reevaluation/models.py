"""What admins have measured again."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from runs_app.models import Device, Evaluation
from tasks_app.models import TaskVersion

BEST_OF_AGENTS = "each agent's best kernel"


class Reevaluation(models.Model):
    """Submissions of one version of a task that were measured again, on the same or another one.

    `chosen` says in words which submissions were taken, and `devices`
    holds the slugs of the devices on which.
    """

    source = models.ForeignKey(TaskVersion, on_delete=models.PROTECT, related_name="+")
    target = models.ForeignKey(TaskVersion, on_delete=models.PROTECT, related_name="reevaluations")
    devices = models.JSONField()
    evaluations = models.ManyToManyField(Evaluation, related_name="reevaluations")
    chosen = models.CharField(max_length=100, default=BEST_OF_AGENTS)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        names = Device.objects.filter(pk__in=self.devices).values_list("name", flat=True)
        where = ", ".join(names)
        if self.source_id == self.target_id:
            return f"{self.chosen} of version {self.target.number}, measured again on {where}"
        route = f"of version {self.source.number} on version {self.target.number}"
        return f"{self.chosen} {route}, on {where}"
