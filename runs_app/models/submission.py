"""Somebody's act of entering a solution."""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Direction, Language
from runs_app.models.agent import Agent, LanguageModel
from runs_app.models.run import Run
from tasks_app.models import TaskVersion


class Submission(models.Model):
    """A kernel entered for one version of a task; its evaluations say how good it is."""

    class Origin(models.TextChoices):
        """How it came to be entered."""

        PERSON = "person", "Entered in the form"
        API = "api", "Entered over the API"
        RUN = "run", "Measures a candidate for its run"
        ENTERED = "entered", "A run's candidate, entered for boards"
        DRY_RUN = "dry_run", "Tried before its version is public"
        SHIPPED = "shipped", "Came with the task"
        CARRIED = "carried", "Carried from another version"
        IMPORTED = "imported", "Imported from another site"

    OF_SOLUTION = ("source", "entry", "files", "language", "direction", "digest")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="submissions"
    )
    task_version = models.ForeignKey(
        TaskVersion, on_delete=models.PROTECT, related_name="submissions"
    )
    source = models.TextField()  # of the entry
    entry = models.CharField(max_length=100, blank=True, default="")  # its name, if it has files
    files = models.JSONField(blank=True, default=dict)  # the others' texts, by name
    language = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Language])
    direction = models.CharField(max_length=10, choices=[(v.value, v.value) for v in Direction])
    digest = models.CharField(max_length=64, db_index=True)  # of the solution
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="submissions")
    language_model = models.ForeignKey(
        LanguageModel, on_delete=models.PROTECT, null=True, blank=True, related_name="submissions"
    )
    private = models.BooleanField(default=False)
    origin = models.CharField(max_length=10, choices=Origin.choices)
    # The submission of a run's candidate: measured like any other, but entered for no board.
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, null=True, blank=True, related_name="candidate_submissions"
    )
    # It was measured on a budget, so its author cannot have it measured again.
    budgeted = models.BooleanField(default=False)
    # The submission of another version of the task that the site entered again, as this one.
    carried_from = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="carried_to"
    )
    created_at = models.DateTimeField()

    class Meta:
        """The newest submission comes first; the origin agrees with the other columns."""

        ordering = ("-created_at",)
        constraints = (
            models.CheckConstraint(
                condition=Q(origin="run", run__isnull=False)
                | Q(
                    origin__in=(
                        *("person", "api", "entered", "dry_run", "shipped", "carried"),
                        "imported",
                    ),
                    run__isnull=True,
                ),
                name="submission_run_iff_origin",
            ),
            models.CheckConstraint(
                # the earlier submission may have been deleted since
                condition=Q(carried_from__isnull=True) | Q(origin="carried"),
                name="submission_carried_from_origin",
            ),
            models.CheckConstraint(
                condition=~Q(origin="dry_run") | Q(private=True), name="submission_dry_run_private"
            ),
        )
        indexes = (
            models.Index(fields=("author", "-created_at"), name="submission_author"),
            models.Index(fields=("-created_at",), name="submission_newest"),
        )

    def __str__(self) -> str:
        return str(self.pk)[:8]

    def get_absolute_url(self) -> str:
        return reverse("submission", args=[self.pk])

    @property
    def solution(self) -> Solution:
        """The solution as the engine's type."""
        return solution_of(self)

    @property
    def same_kernel(self) -> dict[str, Any]:
        """The columns that another submission of the same kernel has, too."""
        return {name: getattr(self, name) for name in self.OF_SOLUTION}


def solution_of(row: Any) -> Solution:
    """The solution that a submission holds, or a record of one; raises `DataError`."""
    return Solution(
        source=row.source,
        entry=row.entry,
        files=row.files,
        language=Language(row.language),
        direction=Direction(row.direction),
    )


def columns_of(solution: Solution) -> dict[str, Any]:
    """The columns in which a solution is stored."""
    return {
        "source": solution.source,
        "entry": solution.name if solution.files else "",
        "files": dict(solution.files),
        "language": solution.language.value,
        "direction": solution.direction.value,
        "digest": solution.digest(),
    }
