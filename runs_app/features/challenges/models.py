"""Challenges of whole agents: a fixed set of tasks, a budget, who has entered, and attempts."""

from __future__ import annotations

import hashlib
import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from gpu_runner.data.verdict import Direction
from runs_app.models import Agent, Device, LanguageModel, Submission
from tasks_app.models import TaskVersion


def digest_of(token: str) -> str:
    """What is stored of an entry's token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class Challenge(models.Model):
    """Tasks of one direction on one device, and what each entry may spend on them.

    Versions are fixed when it is made, so that all entries are measured on the same workloads.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=100, unique=True)
    description = models.TextField(blank=True)
    versions = models.ManyToManyField(TaskVersion, related_name="challenges")
    direction = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Direction])
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="challenges")
    evaluations = models.PositiveIntegerField()  # of one entry on each task
    wall_time_s = models.PositiveIntegerField()  # of one entry
    usd = models.FloatField(null=True, blank=True)  # of one entry, as it reports; null: no limit
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)  # when its best kernels became public

    class Meta:
        """The newest comes first; every budget leaves something to spend."""

        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(evaluations__gt=0, wall_time_s__gt=0), name="challenge_budget"
            ),
            models.CheckConstraint(
                condition=Q(usd__isnull=True) | Q(usd__gt=0), name="challenge_money"
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="challenge_ends_later"
            ),
        )

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Address of the challenge's page."""
        return reverse("challenge", args=[self.slug])

    def is_open(self, now: datetime) -> bool:
        """Whether somebody can enter at `now`."""
        return self.starts_at <= now < self.ends_at


class Entry(models.Model):
    """One agent's one try at a challenge; what its token submits is of this entry.

    It is the bearer of that token, of which it holds the digest alone. Money and tokens are what
    the agent reports.
    """

    class State(models.TextChoices):
        """How far it is."""

        RUNNING = "running", "Running"
        ENDED = "ended", "Ended"  # takes no more submissions; some may still be measured
        RANKED = "ranked", "Ranked"  # its best kernels were sent to be ranked

    scopes = ("read", "submit")
    """What its token allows, beside what visitors read."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    challenge = models.ForeignKey(Challenge, on_delete=models.CASCADE, related_name="entries")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="entries"
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="entries")
    language_model = models.ForeignKey(
        LanguageModel, on_delete=models.PROTECT, null=True, blank=True, related_name="entries"
    )
    setting = models.CharField(max_length=100, blank=True)  # tells settings of one agent apart
    repeat = models.PositiveIntegerField()  # of the same agent and setting, from 1
    digest = models.CharField(max_length=64, unique=True)  # SHA-256; the token has 256 random bits
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    started_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=100, blank=True)  # why it ended
    usd = models.FloatField(null=True, blank=True)
    tokens = models.BigIntegerField(null=True, blank=True)
    transcript = models.TextField(blank=True)

    class Meta:
        """The first comes first; repeats of an agent and setting have numbers of their own."""

        ordering = ("started_at", "pk")
        verbose_name_plural = "entries"
        constraints = (
            models.UniqueConstraint(
                fields=("challenge", "agent", "setting", "repeat"), name="entry_repeat"
            ),
            models.CheckConstraint(
                condition=Q(state="running", ended_at__isnull=True)
                | Q(state__in=("ended", "ranked"), ended_at__isnull=False),
                name="entry_ended_at_iff_ended",
            ),
        )
        indexes = (
            models.Index(
                fields=("state", "deadline_at"),
                name="entry_under_way",
                condition=Q(state__in=("running", "ended")),
            ),
        )

    def __str__(self) -> str:
        setting = f", {self.setting}" if self.setting else ""
        return f"{self.agent}{setting}, repeat {self.repeat}"

    def get_absolute_url(self) -> str:
        """Address of the entry's page."""
        return reverse("entry", args=[self.pk])

    def left_s(self, now: datetime) -> float:
        """Seconds until it ends by itself; 0 where it has ended."""
        is_running = self.state == self.State.RUNNING
        return max((self.deadline_at - now).total_seconds(), 0.0) if is_running else 0.0

    @property
    def left_usd(self) -> float | None:
        """US dollars that are left; None where the challenge has no such limit."""
        limit = self.challenge.usd
        return None if limit is None else max(limit - (self.usd or 0.0), 0.0)

    @property
    def refusal(self) -> str:
        """Why its token isn't valid; empty if it is."""
        return "" if self.user.is_active else "this token's account is disabled"


class Attempt(models.Model):
    """A submission that was made for an entry, with the entry's token."""

    submission = models.OneToOneField(
        Submission, on_delete=models.CASCADE, primary_key=True, related_name="attempt"
    )
    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="attempts")

    def __str__(self) -> str:
        return str(self.submission_id)[:8]
