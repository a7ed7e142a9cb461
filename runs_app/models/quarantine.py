"""What persons and audits say of a result: words, and what a person must decide or has decided."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from tasks_app.models import TaskVersion


class Quarantine(models.TextChoices):
    """Whether a person must decide, or has decided, that a suspicious result counts."""

    NONE = "none", "No suspicion"
    OPEN = "open", "In quarantine"
    CLEARED = "cleared", "Cleared"
    REJECTED = "rejected", "Rejected"


class Audited(models.TextChoices):
    """What audits say of a submission's place on a device's board."""

    NONE = "none", "Not audited"
    WAITING = "waiting", "Audit under way"
    PASSED = "passed", "Verified"
    FAILED = "failed", "Audit failed"
    SUSPICIOUS = "suspicious", "Audit in quarantine"
    INCONCLUSIVE = "inconclusive", "Audit without a result"


class QuarantineCase(models.Model):
    """One source that tripped the same checks for the same reasons on one version of a task.

    All evaluations that did share the case, so that nobody is asked twice. `suspicions` is a list
    of {check, reason, line}; `fingerprint` is their digest.
    """

    digest = models.CharField(max_length=64)  # of the solution
    task_version = models.ForeignKey(TaskVersion, on_delete=models.PROTECT, related_name="+")
    fingerprint = models.CharField(max_length=64)
    suspicions = models.JSONField()
    state = models.CharField(max_length=10, choices=Quarantine.choices[1:], default=Quarantine.OPEN)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("created_at", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("digest", "task_version", "fingerprint"), name="quarantine_case_once"
            ),
            models.CheckConstraint(
                condition=Q(state__in=("open", "cleared", "rejected")), name="quarantine_case_state"
            ),
        )
        indexes = (models.Index(fields=("state", "created_at"), name="quarantine_open"),)

    def __str__(self) -> str:
        return f"{self.task_version.task.slug} case {self.pk}"


class QuarantineDecision(models.Model):
    """Who decided a case, when, how and why; the newest decision holds."""

    case = models.ForeignKey(QuarantineCase, on_delete=models.CASCADE, related_name="decisions")
    state = models.CharField(max_length=10, choices=Quarantine.choices[2:])
    reason = models.TextField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()

    class Meta:
        """The newest decision comes first; none is without a reason."""

        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(condition=~Q(reason=""), name="quarantine_decision_reason"),
            models.CheckConstraint(
                condition=Q(state__in=("cleared", "rejected")), name="quarantine_decision_state"
            ),
        )

    def __str__(self) -> str:
        return f"{self.case}: {self.state}"
