"""What calls people back: what they watch, what they were told, and by which ways."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs_app.models import Device, Run
from tasks_app.models import Task


class Watch(models.Model):
    """Somebody wants to know what happens to a task, a board or a run.

    A board is a device's: of one task where `task` is set, of all tasks where it is not.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="watches"
    )
    task = models.ForeignKey(Task, on_delete=models.CASCADE, null=True, blank=True)
    device = models.ForeignKey(Device, on_delete=models.CASCADE, null=True, blank=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, blank=True)
    key = models.CharField(max_length=200)  # names what is watched, so that it is watched once
    created_at = models.DateTimeField()

    class Meta:
        """The newest comes first; nothing is watched twice, and each watches something."""

        ordering = ("-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(fields=("user", "key"), name="watch_once"),
            models.CheckConstraint(
                condition=Q(run__isnull=False, task__isnull=True, device__isnull=True)
                | Q(run__isnull=True, task__isnull=False)
                | Q(run__isnull=True, device__isnull=False),
                name="watch_something",
            ),
        )

    def __str__(self) -> str:
        return self.key


class NoticeKind(models.TextChoices):
    """What a notice is about."""

    VERDICT = "verdict", "Verdicts on your ranked submissions"
    PLACE = "place", "Somebody takes your place on a board"
    RUN = "run", "Your runs end or pause"
    WATCHED = "watched", "Something that you watch changes"


class Way(models.TextChoices):
    """How somebody is told."""

    OFF = "off", "Not at all"
    SITE = "site", "On the site"
    EMAIL = "email", "On the site, and by e-mail at once"
    DAILY = "daily", "On the site, and in one e-mail a day"


class NoticeSettings(models.Model):
    """How somebody wants to be told; without a row the columns' defaults count."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="notice_settings",
    )
    verdict = models.CharField(max_length=10, choices=Way.choices, default=Way.SITE)
    place = models.CharField(max_length=10, choices=Way.choices, default=Way.EMAIL)
    run = models.CharField(max_length=10, choices=Way.choices, default=Way.SITE)
    watched = models.CharField(max_length=10, choices=Way.choices, default=Way.DAILY)

    def __str__(self) -> str:
        return f"ways of {self.user_id}"


class Notice(models.Model):
    """Something that one person is told. `text` names only what that person may see."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    kind = models.CharField(max_length=10, choices=NoticeKind.choices)
    text = models.CharField(max_length=500)
    url = models.CharField(max_length=300)  # a path of this site
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)
    awaits_digest = models.BooleanField(default=False)

    class Meta:
        ordering = ("-created_at", "-pk")
        indexes = (
            models.Index(fields=("user", "-created_at"), name="notice_of_user"),
            models.Index(fields=("user",), condition=Q(read_at__isnull=True), name="notice_unread"),
            models.Index(
                fields=("created_at",), condition=Q(awaits_digest=True), name="notice_digest"
            ),
        )

    def __str__(self) -> str:
        return self.text


class Webhook(models.Model):
    """An address of somebody's that is told of notices; its secret is made of `salt`."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks"
    )
    url = models.CharField(max_length=500)
    salt = models.CharField(max_length=64)
    failures = models.PositiveIntegerField(default=0)  # deliveries given up, one after the other
    stopped_reason = models.CharField(max_length=300, blank=True)  # empty while it is told
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        return self.url


class Delivery(models.Model):
    """One message on its way to a webhook, or as an e-mail where `webhook` is empty.

    `next_at` is when the next try is due; while a try is under way it lies beyond its end. A row
    with `done_at` is over: `error` is empty if it arrived.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries"
    )
    payload = models.JSONField()
    attempt = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    next_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveIntegerField(null=True, blank=True)  # of the last answer
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        indexes = (
            models.Index(
                fields=("next_at",), condition=Q(done_at__isnull=True), name="delivery_due"
            ),
        )

    def __str__(self) -> str:
        return f"delivery {self.pk}"
