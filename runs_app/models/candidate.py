"""Candidates of runs."""

from __future__ import annotations

from django.db import models

from runs_app.models.run import LanguageModelCall, Run
from runs_app.models.submission import Submission


class Candidate(models.Model):
    """A candidate of a run; the columns repeat the log, for lists and for the next step.

    `submission` is the private-to-the-run submission whose evaluations measure it; `entry` the
    submission by which it was entered for the leaderboard. `feedback` is an encoded
    `runs_app.optimiser.evolve.feedback.Feedback`.
    """

    class State(models.TextChoices):
        """How far it has come; the words of `runs_app.optimiser.evolve.history.CandidateState`."""

        DRAFTED = "drafted", "Drafted"
        DROPPED = "dropped", "Dropped"
        MEASURING = "measuring", "Measuring"
        MEASURED = "measured", "Measured"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="candidates")
    number = models.PositiveIntegerField()
    source = models.TextField()
    digest = models.CharField(max_length=64)
    edit = models.CharField(max_length=20)
    generation = models.PositiveIntegerField(default=0)
    slot = models.PositiveIntegerField(default=0)
    island = models.PositiveIntegerField(default=0)
    parents = models.JSONField(default=list)  # numbers
    call = models.ForeignKey(
        LanguageModelCall,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="candidates",
    )
    model = models.CharField(max_length=150, blank=True)
    title = models.CharField(max_length=300, blank=True)
    knobs = models.JSONField(default=dict)
    techniques = models.JSONField(default=list)
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFTED)
    reason = models.TextField(blank=True)
    votes = models.JSONField(default=dict)  # verifier -> bool

    submission = models.OneToOneField(
        Submission, on_delete=models.SET_NULL, null=True, blank=True, related_name="candidate"
    )
    entry = models.ForeignKey(
        Submission, on_delete=models.SET_NULL, null=True, blank=True, related_name="entered_from"
    )
    measuring = models.JSONField(default=list)  # modes in flight
    measured = models.JSONField(default=list)  # modes done
    verdict = models.CharField(max_length=20, blank=True)
    latency_ns = models.FloatField(null=True, blank=True)
    spread = models.FloatField(null=True, blank=True)
    speedup = models.FloatField(null=True, blank=True)  # against the best baseline, if known
    floor_fraction = models.FloatField(null=True, blank=True)
    bottleneck = models.CharField(max_length=30, blank=True)
    was_best = models.BooleanField(default=False)
    feedback = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField()
    measured_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Numbers count from 1 in each run."""

        ordering = ("run", "number")
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="candidate_number"),)

    def __str__(self) -> str:
        return f"#{self.number}"

    @property
    def is_seed(self) -> bool:
        """Whether it is the kernel that the run started with, so nobody wrote it in the run."""
        return self.edit == "seed"
