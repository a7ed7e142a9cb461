"""What language models say of tasks."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs_app.models import LanguageModelCall
from tasks_app.models import TaskVersion


class TaskJudgement(models.Model):
    """One language model's advice on a version of a task; it gates nothing.

    `verdicts` is [{"criterion", "flagged", "reason"}], empty until the call has been answered, and
    for ever where `problem` says why the answer could not be used or the call itself failed.
    Prompt, answer, tokens and cost are the call's.
    """

    version = models.ForeignKey(TaskVersion, on_delete=models.CASCADE, related_name="judgements")
    call = models.OneToOneField(
        LanguageModelCall, on_delete=models.PROTECT, related_name="judgement"
    )
    verdicts = models.JSONField(default=list)
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField()

    class Meta:
        """The newest comes first; what could not be read has no verdict."""

        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(problem="") | Q(verdicts=[]), name="judgement_problem_has_no_verdict"
            ),
        )

    def __str__(self) -> str:
        return f"{self.version} by {self.call.language_model}"
