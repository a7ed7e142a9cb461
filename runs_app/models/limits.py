"""What admins allow: announcements and stops, and what one person may use."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class Announcement(models.Model):
    """Something that everybody is told, on each page, as long as it is in force.

    A stop is one too: while it is in force the site takes no submissions, or starts no runs, and
    `text` is the reason that pages and the API give. It is in force until `until`, or until an
    admin ends it.
    """

    class Kind(models.TextChoices):
        """What it does beside telling."""

        NOTE = "note", "Announcement"
        SUBMISSIONS = "submissions", "Submissions are stopped"
        RUNS = "runs", "Runs are stopped"

    kind = models.CharField(max_length=15, choices=Kind.choices)
    text = models.TextField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """The newest comes first; each stop is in force once."""

        ordering = ("-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("kind",),
                condition=Q(ended_at__isnull=True) & ~Q(kind="note"),
                name="announcement_one_stop",
            ),
        )
        indexes = (
            models.Index(
                fields=("created_at",), condition=Q(ended_at__isnull=True), name="announcement_open"
            ),
        )

    def __str__(self) -> str:
        return self.get_kind_display()


class PersonalQuota(models.Model):
    """What one person may use, in place of the site's limits; None where these count."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="personal_quota",
    )
    waiting = models.PositiveIntegerField(null=True, blank=True)
    per_day = models.PositiveIntegerField(null=True, blank=True)
    running_runs = models.PositiveIntegerField(null=True, blank=True)
    usd_per_day = models.FloatField(null=True, blank=True)

    def __str__(self) -> str:
        return f"quota {self.user_id}"
