"""Judgements in the admin."""

from __future__ import annotations

from django.contrib import admin

from runs_app.core.work.read_only_admin import ReadOnlyAdmin
from runs_app.features.advice import models


@admin.register(models.TaskJudgement)
class TaskJudgementAdmin(ReadOnlyAdmin):
    """Read what a language model said of a task."""

    list_display = ("version", "language_model", "verdicts", "problem", "cost_usd", "created_at")
    list_select_related = ("version__task", "call__language_model")
    search_fields = ("version__task__slug", "call__language_model__name")

    @admin.display(description="Language model")
    def language_model(self, judgement: models.TaskJudgement) -> str:
        """Who was asked."""
        return judgement.call.language_model.name

    @admin.display(description="Cost in USD")
    def cost_usd(self, judgement: models.TaskJudgement) -> float | None:
        """What the call cost."""
        return judgement.call.cost_usd
