"""Tasks in the admin, to be read: what changes them is in the audit log."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from tasks_app.models import AuditEntry, Override, Soundness, Task, TaskVersion


class _ReadOnly:
    """Rows that only services write, so that each change is in the audit log."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class _ReadOnlyAdmin(_ReadOnly, admin.ModelAdmin):  # type: ignore[type-arg]
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: scores attach to versions, and the audit log is kept."""
        return False


@admin.register(Task)
class TaskAdmin(_ReadOnlyAdmin):
    """Read a task; it is changed on the site's pages."""

    list_display = ("slug", "title", "scenario", "state", "current_version")
    list_select_related = ("current_version__task",)
    list_filter = ("state", "scenario", "difficulty")
    search_fields = ("slug", "title")
    fields = (
        "slug",
        "title",
        "scenario",
        "state",
        "current_version",
        "difficulty",
        "tags",
        "contaminated",
        "created_at",
    )


@admin.register(AuditEntry)
class AuditEntryAdmin(_ReadOnlyAdmin):
    """Read the audit log of what curators did."""

    list_display = ("created_at", "kind", "name", "actor", "reason")
    list_filter = ("kind",)
    search_fields = ("name", "reason")


class _ReadOnlyInline(_ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    extra = 0
    can_delete = False


class SoundnessInline(_ReadOnlyInline):
    """The version's soundness report: wrong kernels and filters."""

    model = Soundness


class OverrideInline(_ReadOnlyInline):
    """Why it was published without one."""

    model = Override


@admin.register(TaskVersion)
class TaskVersionAdmin(_ReadOnlyAdmin):
    """Read a version, with what is known of its soundness."""

    inlines = (SoundnessInline, OverrideInline)
    list_display = ("__str__", "abi", "dtype", "digest", "created_at")
    list_select_related = ("task",)
    list_filter = ("abi", "dtype")
    search_fields = ("task__slug", "digest")
