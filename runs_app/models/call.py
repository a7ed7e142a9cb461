"""Calls of language models: every one is stored, before it is sent."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from runs_app.models.agent import LanguageModel
from runs_app.models.run import Run
from runs_app.models.tuning import Tuning


class LanguageModelCall(models.Model):
    """One call: prompt, answer, tokens, cost. Of a run, of a prompt's tuning, or a person's test.

    WAITING: stored, not sent. SENT: a process has taken it; from now on it may be paid, and nobody
    sends it again. ANSWERED, FAILED: over. INTERRUPTED: its process died while it waited.
    """

    class Status(models.TextChoices):
        """How far it has come."""

        WAITING = "WAITING", "Waiting"
        SENT = "SENT", "Sent"
        ANSWERED = "ANSWERED", "Answered"
        FAILED = "FAILED", "Failed"
        INTERRUPTED = "INTERRUPTED", "Interrupted"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, null=True, blank=True, related_name="calls"
    )
    tuning = models.ForeignKey(
        Tuning, on_delete=models.CASCADE, null=True, blank=True, related_name="calls"
    )
    number = models.PositiveIntegerField(null=True, blank=True)  # the run's ask
    role = models.CharField(max_length=20)
    verifier = models.CharField(max_length=20, blank=True)
    about = models.PositiveIntegerField(null=True, blank=True)  # number of a candidate
    parents = models.JSONField(default=list)
    edit = models.CharField(max_length=20, blank=True)
    generation = models.PositiveIntegerField(default=0)
    slot = models.PositiveIntegerField(default=0)
    island = models.PositiveIntegerField(default=0)
    language_model = models.ForeignKey(
        LanguageModel, on_delete=models.PROTECT, related_name="calls"
    )
    prompt = models.CharField(max_length=100, blank=True)
    prompt_version = models.PositiveIntegerField(default=1)
    messages = models.JSONField()  # [{"role": ..., "content": ...}]
    temperature = models.FloatField()
    max_tokens = models.PositiveIntegerField()
    seed = models.BigIntegerField(null=True, blank=True)
    worst_usd = models.FloatField(default=0.0)
    worst_tokens = models.PositiveIntegerField(default=0)

    status = models.CharField(max_length=12, choices=Status.choices, default=Status.WAITING)
    response = models.TextField(blank=True)
    partial = models.BooleanField(default=False)  # the answer was cut off
    finish_reason = models.CharField(max_length=30, blank=True)
    served_by = models.CharField(
        max_length=150, blank=True
    )  # the model's name, as the endpoint said
    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=20, blank=True)
    problem = models.TextField(blank=True)  # why the answer could not be used
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    cost_usd = models.FloatField(default=0.0)
    estimated = models.BooleanField(default=False)  # the endpoint told no token counts
    attempts = models.PositiveIntegerField(default=0)
    told = models.BooleanField(default=False)  # the run's strategy has learnt of it
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    heard_at = models.DateTimeField(null=True, blank=True)  # its process was alive
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """An ask of a run is one call."""

        ordering = ("created_at",)
        constraints = (
            models.UniqueConstraint(fields=("run", "number"), name="call_number"),
            models.CheckConstraint(
                condition=Q(
                    status__in=("ANSWERED", "FAILED", "INTERRUPTED"), ended_at__isnull=False
                )
                | Q(status__in=("WAITING", "SENT"), ended_at__isnull=True),
                name="call_ended_at_iff_over",
            ),
        )
        indexes = (
            models.Index(fields=("status", "heard_at"), name="call_status"),
            models.Index(fields=("ended_at",), condition=Q(told=False), name="call_untold"),
        )

    def __str__(self) -> str:
        """Role and number."""
        return f"{self.role} {self.number or ''}".strip()
