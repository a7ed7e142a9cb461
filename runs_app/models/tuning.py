"""Verifier prompts, and how they were improved."""

from __future__ import annotations

import uuid

from django.db import models

from runs_app.models.agent import LanguageModel


class VerifierPrompt(models.Model):
    """Instructions of a verifier that a tuning produced; the shipped ones are files.

    A run uses the one that is marked as in use for its verifier, else the shipped one.
    """

    verifier = models.CharField(max_length=20)
    version = models.PositiveIntegerField()
    text = models.TextField()
    in_use = models.BooleanField(default=False)
    tuning = models.ForeignKey(
        "Tuning", on_delete=models.SET_NULL, null=True, blank=True, related_name="prompts"
    )
    created_at = models.DateTimeField()

    class Meta:
        """At most one prompt of a verifier is in use."""

        ordering = ("verifier", "-version")
        constraints = (
            models.UniqueConstraint(fields=("verifier", "version"), name="verifier_version"),
            models.UniqueConstraint(
                fields=("verifier",), condition=models.Q(in_use=True), name="verifier_one_in_use"
            ),
        )

    def __str__(self) -> str:
        return f"{self.verifier} {self.version}"


class Tuning(models.Model):
    """One run of `manage.py tune_verifiers`: a balanced set, generations of prompts, accuracies.

    `examples` lists the training and held-out kernels by evaluation id with their truth.
    `generations` holds, for each: prompt text, train and held-out accuracy with counts, cost.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    verifier = models.CharField(max_length=20)
    language_model = models.ForeignKey(
        LanguageModel, on_delete=models.PROTECT, related_name="tunings"
    )
    seed = models.BigIntegerField()
    examples = models.JSONField()
    generations = models.JSONField(default=list)
    reason = models.TextField(blank=True)  # why it ended early
    usd = models.FloatField(default=0.0, null=True, blank=True)  # null: the price is unknown
    tokens = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.verifier} {str(self.pk)[:8]}"
