"""Optimization runs, the log from which they can be replayed, and calls of language models."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from gpu_runner.data.verdict import Direction
from runs_app.models.agent import Agent, LanguageModel
from runs_app.models.runner import Device
from runs_app.models.tuning import Tuning
from tasks_app.models import TaskVersion


class Run(models.Model):
    """One optimization campaign on a task version and device, with a budget.

    `config` is an encoded `runs_app.optimiser.evolve.config.RunConfig`, `problem` an encoded
    `Problem`: what was true at the start, prices included, so that the run can be replayed. The
    spent columns repeat what the log says, for lists; calls that wait for an answer count at their
    worst.
    """

    class Status(models.TextChoices):
        """What the run is doing."""

        RUNNING = "RUNNING", "Running"
        PAUSED = "PAUSED", "Paused"
        FINISHED = "FINISHED", "Finished"
        STOPPED = "STOPPED", "Stopped"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=150, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="runs"
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="runs")
    task_version = models.ForeignKey(TaskVersion, on_delete=models.PROTECT, related_name="runs")
    direction = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Direction])
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="runs")
    strategy = models.CharField(max_length=30)
    seed = models.BigIntegerField()
    config = models.JSONField()
    problem = models.JSONField()
    private = models.BooleanField(default=False)
    enters_best = models.BooleanField(default=False)  # the best is submitted by itself at the end

    status = models.CharField(max_length=10, choices=Status.choices, default=Status.RUNNING)
    reason = models.TextField(blank=True)  # why it is paused, or why it ended
    by_budget = models.BooleanField(
        default=False
    )  # its budget ended it: an extension lets it go on
    failures = models.PositiveIntegerField(default=0)  # calls that failed one after the other
    steps_begun = models.PositiveIntegerField(default=0)  # since one last came to its end

    usd = models.FloatField(default=0.0, null=True, blank=True)  # null: some price is unknown
    tokens = models.BigIntegerField(default=0)
    evaluations = models.PositiveIntegerField(default=0)
    active_s = models.FloatField(default=0.0)  # time spent searching before `resumed_at`
    candidates_made = models.PositiveIntegerField(default=0)
    best = models.ForeignKey(
        "Candidate", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    seed_latency_ns = models.FloatField(null=True, blank=True)
    best_latency_ns = models.FloatField(null=True, blank=True)
    events_stored = models.PositiveIntegerField(default=0)  # seq of the newest event

    created_at = models.DateTimeField()
    resumed_at = models.DateTimeField(null=True, blank=True)  # null while it is not running
    searched_at = models.DateTimeField(
        null=True, blank=True
    )  # when its search ended: ranking its best counts as no running time
    advanced_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.CheckConstraint(
                condition=Q(status__in=("FINISHED", "STOPPED"), ended_at__isnull=False)
                | Q(status__in=("RUNNING", "PAUSED"), ended_at__isnull=True),
                name="run_ended_at_iff_over",
            ),
            models.CheckConstraint(
                condition=Q(status="RUNNING", resumed_at__isnull=False)
                | (~Q(status="RUNNING") & Q(resumed_at__isnull=True)),
                name="run_resumed_at_iff_running",
            ),
        )
        indexes = (models.Index(fields=("status", "advanced_at"), name="run_status"),)

    def __str__(self) -> str:
        return self.name or str(self.pk)[:8]

    def get_absolute_url(self) -> str:
        return reverse("run", args=[self.pk])

    @property
    def is_over(self) -> bool:
        """Whether it has ended; an extension may still let it go on."""
        return self.status in (self.Status.FINISHED, self.Status.STOPPED)

    @property
    def has_own_best(self) -> bool:
        """Whether its best is a kernel that was written in the run, not its seed."""
        return self.best is not None and not self.best.is_seed


class RunEvent(models.Model):
    """One event of a run: an event of `runs_app.optimiser.evolve.events`, or what a person did.

    `seq` counts from 1 in each run. `payload` of an event is its encoded form, with `id`s of rows
    beside it under the key "row" where the page needs them; events alone replay the run.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=20)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        """No place is taken twice."""

        ordering = ("run", "seq")
        constraints = (models.UniqueConstraint(fields=("run", "seq"), name="run_event_seq"),)

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"


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
    cost_usd = models.FloatField(default=0.0, null=True, blank=True)  # null: the price is unknown
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
        return f"{self.role} {self.number or ''}".strip()

    @property
    def tokens_used(self) -> int:
        """Tokens of the prompt and the answer."""
        return self.tokens_in + self.tokens_out
