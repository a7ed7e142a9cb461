"""Submissions, evaluations and runners in the admin, to be read; services change them."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs_app import models
from runs_app.core.work.read_only_admin import ReadOnlyAdmin
from runs_app.optimiser.verifiers.tuning import use_prompt


@admin.register(models.Submission)
class SubmissionAdmin(ReadOnlyAdmin):
    """Read a submission."""

    list_display = (
        "id", "task_version", "agent", "author", "language", "origin", "private", "created_at",
    )  # fmt: skip
    list_filter = ("language", "direction", "origin", "private")
    list_select_related = ()
    beside = ("task_version__task", "agent", "author")
    search_fields = ("id", "author__username", "agent__name", "digest")


@admin.register(models.Evaluation)
class EvaluationAdmin(ReadOnlyAdmin):
    """Read an evaluation; the newest end first, as an index has them."""

    ordering = ("-finished_at",)
    list_display = (
        "id", "task_version", "device", "mode", "status", "verdict", "quarantine", "audited",
        "created_at",
    )  # fmt: skip
    list_filter = (
        "status", "verdict", "mode", "device", "device__imported_from", "quarantine", "audited",
    )  # fmt: skip
    list_select_related = ()
    beside = ("task_version__task", "device")
    search_fields = ("id", "submission__id", "reason")


@admin.register(models.TaskCheck)
class TaskCheckAdmin(ReadOnlyAdmin):
    """Read a check of a task."""

    list_display = ("id", "version", "device", "status", "passed", "asked_by", "created_at")
    list_filter = ("status", "passed", "device")
    list_select_related = ("version__task", "device", "asked_by")
    search_fields = ("id", "version__task__slug", "reason")


@admin.register(models.BaselineMeasurement)
class BaselineMeasurementAdmin(ReadOnlyAdmin):
    """Read a measurement of a task's baselines."""

    list_display = ("id", "version", "direction", "device", "status", "created_at")
    list_filter = ("status", "direction", "device")
    list_select_related = ("version__task", "device")
    search_fields = ("id", "version__task__slug", "reason")


@admin.register(models.EvaluationEvent)
class EvaluationEventAdmin(ReadOnlyAdmin):
    """Read an event."""

    ordering = ("-pk",)
    list_display = ("evaluation", "position", "kind", "attempt", "seq", "created_at")
    list_filter = ("kind",)
    list_select_related = ("evaluation",)
    search_fields = ("evaluation__id",)


class _KeptAdmin(ReadOnlyAdmin):
    """Rows that stay: they say who decided what."""

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False


@admin.register(models.QuarantineCase)
class QuarantineCaseAdmin(_KeptAdmin):
    """Read a case; the page /quarantine/ shows the source beside it, and takes the decision."""

    list_display = ("__str__", "state", "reasons", "decision", "created_at")
    list_filter = ("state",)
    list_select_related = ("task_version__task",)
    search_fields = ("digest", "task_version__task__slug")
    readonly_fields = ("decide_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.QuarantineCase]:
        """With their decisions."""
        return super().get_queryset(request).prefetch_related("decisions__decided_by")

    @admin.display(description="Raised by")
    def reasons(self, case: models.QuarantineCase) -> str:
        """Checks and reasons."""
        return "; ".join(f"{each['check']}: {each['reason']}" for each in case.suspicions)

    @admin.display(description="Latest decision")
    def decision(self, case: models.QuarantineCase) -> str:
        """Who decided, and why."""
        newest = next(iter(case.decisions.all()), None)
        return f"{newest.decided_by}: {newest.reason}" if newest else "none yet"

    @admin.display(description="Decide")
    def decide_at(self, case: models.QuarantineCase) -> SafeString:
        """Link to the page that takes decisions."""
        return format_html(
            '<a href="{}#case-{}">On the quarantine page</a>', reverse("quarantine"), case.pk
        )


@admin.register(models.QuarantineDecision)
class QuarantineDecisionAdmin(_KeptAdmin):
    """Read a decision."""

    list_display = ("case", "state", "reason", "decided_by", "created_at")
    list_filter = ("state",)
    list_select_related = ("case__task_version__task", "decided_by")


@admin.register(models.Runner)
class RunnerAdmin(ReadOnlyAdmin):
    """Read a runner."""

    list_display = ("name", "device", "state", "reason", "jail", "version", "seen_at")


@admin.register(models.Device)
class DeviceAdmin(ReadOnlyAdmin):
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


@admin.register(models.VerifierPrompt)
class VerifierPromptAdmin(ReadOnlyAdmin):
    """Read a tuned prompt, and choose the one in use; without one, runs take the shipped one."""

    list_display = ("verifier", "version", "in_use", "tuning", "created_at")
    list_filter = ("verifier", "in_use")
    list_select_related = ("tuning",)
    actions = ("use", "use_shipped")

    @admin.action(description="Use the selected prompt from now on")
    def use(self, request: HttpRequest, chosen: QuerySet[models.VerifierPrompt]) -> None:
        """Put one prompt in use for its verifier."""
        if chosen.count() != 1:
            self.message_user(request, "Select one prompt.", "error")
            return
        use_prompt(prompt=chosen.get())

    @admin.action(description="Go back to the shipped prompt for these verifiers")
    def use_shipped(self, request: HttpRequest, chosen: QuerySet[models.VerifierPrompt]) -> None:
        """Take tuned prompts out of use."""
        chosen.filter(in_use=True).update(in_use=False)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Actions change rows, so they take the right to change them."""
        return request.user.has_perm("runs_app.change_verifierprompt")
