"""Tasks in the admin: their state can change, their versions cannot."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone

from tasks_app.models import Override, Soundness, Task, TaskVersion
from tasks_app.services import override_gate


class TaskForm(forms.ModelForm):  # type: ignore[type-arg]
    """Publishes an unproven version only with a reason."""

    override_reason = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Needed to publish a version that no soundness report proves: a wrong kernel"
        " passes it, a filter flags it, or there is no report. It is stored with your name, and"
        " shown on the task's page.",
    )

    class Meta:
        """What the admin may change."""

        model = Task
        fields = ("title", "scenario", "state", "current_version", "override_reason")

    def clean(self) -> dict[str, Any]:
        """Refuse to make an unproven version public without a reason."""
        values: dict[str, Any] = super().clean() or {}
        version = values.get("current_version")
        public = values.get("state") == Task.State.PUBLISHED
        changes = {"state", "current_version"} & set(self.changed_data)
        if (
            version is None
            or not public
            or not changes
            or values.get("override_reason", "").strip()
        ):
            return values
        if refusal := version.unproven:
            self.add_error("override_reason", f"Say why it may be published anyway: {refusal}.")
        return values


@admin.register(Task)
class TaskAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Publish, retire, or go back to an older version."""

    form = TaskForm
    list_display = ("slug", "title", "scenario", "state", "current_version")
    list_filter = ("state", "scenario")
    search_fields = ("slug", "title")
    readonly_fields = ("slug", "created_at")

    def save_model(
        self,
        request: HttpRequest,
        obj: Task,
        form: forms.ModelForm[Task],
        change: bool,  # noqa: FBT001 - Django's signature
    ) -> None:
        """Store the task, and the reason why it is public without a proof."""
        super().save_model(request, obj, form, change)
        reason = form.cleaned_data.get("override_reason", "").strip()
        if reason and obj.current_version is not None and isinstance(request.user, User):
            override_gate(
                version=obj.current_version, user=request.user, reason=reason, now=timezone.now()
            )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tasks come from `manage.py load_tasks`, which checks them."""
        return False


class _ReadOnlyInline(admin.TabularInline):  # type: ignore[type-arg]
    """Rows that only services write."""

    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False


class SoundnessInline(_ReadOnlyInline):
    """The version's soundness report: wrong kernels and filters."""

    model = Soundness


class OverrideInline(_ReadOnlyInline):
    """Why it was published without one."""

    model = Override


@admin.register(TaskVersion)
class TaskVersionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Read a version, with what is known of its soundness."""

    inlines = (SoundnessInline, OverrideInline)
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
