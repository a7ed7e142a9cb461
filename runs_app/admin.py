"""Submissions, evaluations and runners in the admin, to be read; services change them."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from runs_app import models


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
    """Rename a language model."""

    list_display = ("name", "created_at")
    search_fields = ("name",)
    readonly_fields = ("created_at",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """They appear with their first submission."""
        return False
