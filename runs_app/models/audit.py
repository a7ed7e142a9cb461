"""The audit of a submission's place on a device's board."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs_app.models.evaluation import Evaluation
from runs_app.models.quarantine import Audited
from runs_app.models.runner import Device
from runs_app.models.submission import Submission


class BoardAudit(models.Model):
    """What audits say of a submission on a device: at most one row, so it is asked for once.

    `evaluation` is the latest audit, whether it is over or not; `Evaluation.audited` of the ranked
    evaluations of the pair repeats `state`. `asked_by` is empty where a record asked for it.
    `facts`: a `gpu_runner.data.facts.Facts` as everybody may see it, of the newest audit with some.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="audits")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=15, choices=Audited.choices[1:], default=Audited.WAITING)
    reason = models.TextField(blank=True)  # of the state, as everybody may see it
    facts = models.JSONField(default=dict, blank=True)
    evaluation = models.ForeignKey(
        Evaluation, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        """One row for each submission and device."""

        ordering = ("-changed_at", "-pk")
        constraints = (
            models.UniqueConstraint(fields=("submission", "device"), name="board_audit_once"),
            models.CheckConstraint(
                condition=Q(state__in=Audited.values[1:]), name="board_audit_state"
            ),
        )

    def __str__(self) -> str:
        return f"{self.submission} on {self.device_id}: {self.state}"
