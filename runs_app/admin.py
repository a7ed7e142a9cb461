"""Submissions, evaluations and runners in the admin, to be read; services change them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from runs_app import models
from runs_app.forms.language_model import LanguageModelForm
from runs_app.services.tuning import use_prompt


class _ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that only services write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False


@admin.register(models.Submission)
class SubmissionAdmin(_ReadOnlyAdmin):
    """Read a submission."""

    list_display = ("id", "task_version", "agent", "author", "language", "private", "created_at")
    list_filter = ("language", "direction", "private")
    list_select_related = ("task_version__task", "agent", "author")
    search_fields = ("id", "author__username", "agent__name", "digest")


@admin.register(models.Evaluation)
class EvaluationAdmin(_ReadOnlyAdmin):
    """Read an evaluation."""

    list_display = ("id", "task_version", "device", "mode", "status", "verdict", "created_at")
    list_filter = ("status", "verdict", "mode", "device")
    list_select_related = ("task_version__task", "device")
    search_fields = ("id", "submission__id", "reason")


@admin.register(models.EvaluationEvent)
class EvaluationEventAdmin(_ReadOnlyAdmin):
    """Read an event."""

    list_display = ("evaluation", "position", "kind", "attempt", "seq", "ignored", "created_at")
    list_filter = ("kind", "ignored")
    search_fields = ("evaluation__id",)


@admin.register(models.Runner)
class RunnerAdmin(_ReadOnlyAdmin):
    """Read a runner."""

    list_display = ("name", "device", "state", "reason", "jail", "version", "seen_at")


@admin.register(models.Device)
class DeviceAdmin(_ReadOnlyAdmin):
    """Read a device."""

    list_display = ("slug", "kind", "name", "created_at")


@admin.register(models.Agent)
class AgentAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Describe or rename an agent."""

    list_display = ("name", "kind", "user", "created_at")
    list_filter = ("kind",)
    search_fields = ("name",)
    readonly_fields = ("kind", "user", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """They appear with their first submission."""
        return False


@admin.register(models.LanguageModel)
class LanguageModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Say where a language model is called, and at what price; the key stays in the environment."""

    form = LanguageModelForm
    list_display = ("name", "base_url", "key_variable", "price_in_usd", "price_out_usd")
    search_fields = ("name", "base_url")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """Note when it appeared."""
        obj.created_at = obj.created_at or timezone.now()
        super().save_model(request, obj, form, change)


@admin.register(models.VerifierPrompt)
class VerifierPromptAdmin(_ReadOnlyAdmin):
    """Read a tuned prompt, and choose the one in use; without one, runs take the shipped one."""

    list_display = ("verifier", "version", "in_use", "tuning", "created_at")
    list_filter = ("verifier", "in_use")
    list_select_related = ("tuning",)
    actions = ("use", "use_shipped")

    @admin.action(description="Use the chosen prompt from now on")
    def use(self, request: HttpRequest, chosen: QuerySet[models.VerifierPrompt]) -> None:
        """Put one prompt in use for its verifier."""
        if chosen.count() != 1:
            self.message_user(request, "Choose one prompt.", "error")
            return
        use_prompt(prompt=chosen.get())

    @admin.action(description="Use the shipped prompt of these verifiers again")
    def use_shipped(self, request: HttpRequest, chosen: QuerySet[models.VerifierPrompt]) -> None:
        """Take tuned prompts out of use."""
        chosen.filter(in_use=True).update(in_use=False)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Actions change rows, so they take the right to change them."""
        return request.user.has_perm("runs_app.change_verifierprompt")
