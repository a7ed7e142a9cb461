"""Tasks in the admin: their state can change, their versions cannot."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from tasks_app.models import Task, TaskVersion


@admin.register(Task)
class TaskAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Publish, retire, or go back to an older version."""

    list_display = ("slug", "title", "scenario", "state", "current_version")
    list_filter = ("state", "scenario")
    search_fields = ("slug", "title")
    readonly_fields = ("slug", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tasks come from `manage.py load_tasks`, which checks them."""
        return False


@admin.register(TaskVersion)
class TaskVersionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Read a version."""

    list_display = ("__str__", "abi", "dtype", "digest", "created_at")
    list_filter = ("abi", "dtype")
    search_fields = ("task__slug", "digest")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Versions come from `manage.py load_tasks`."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: TaskVersion | None = None) -> bool:
        """A version never changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: TaskVersion | None = None) -> bool:
        """Scores attach to versions."""
        return False
