"""Tasks and their immutable versions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.db import models
from django.urls import reverse

from gpu_runner.data import codec, verdict
from gpu_runner.data.task import Task as TaskData


class Task(models.Model):
    """A kernel problem; what it asks for stands in its versions."""

    class State(models.TextChoices):
        """Where the task stands in its curation."""

        DRAFT = "draft", "Draft"
        REVIEW = "review", "In review"
        PUBLISHED = "published", "Published"
        RETIRED = "retired", "Retired"

    slug = models.SlugField(max_length=100, unique=True)
    title = models.CharField(max_length=200)
    scenario = models.CharField(max_length=50, default="other", db_index=True)
    state = models.CharField(max_length=20, choices=State.choices, default=State.PUBLISHED)
    current_version = models.ForeignKey(
        "TaskVersion", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()

    class Meta:
        """Tasks are listed by name."""

        ordering = ("slug",)

    def __str__(self) -> str:
        """Name of the task, as on the command line."""
        return self.slug

    def get_absolute_url(self) -> str:
        """Address of the task's page."""
        return reverse("task", args=[self.slug])


class TaskVersion(models.Model):
    """An immutable snapshot of a task: all scores attach to it."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, unique=True)
    document = models.JSONField()
    abi = models.CharField(max_length=10, choices=[(v.value, v.value) for v in verdict.Abi])
    dtype = models.CharField(max_length=20)
    created_at = models.DateTimeField()

    class Meta:
        """The newest version comes first."""

        ordering = ("task", "-number")
        constraints = (
            models.UniqueConstraint(fields=("task", "number"), name="task_version_number"),
        )

    def __str__(self) -> str:
        """Name of the task and number of the version."""
        return f"{self.task.slug} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store a new version; raises `TypeError` on a change to a stored one."""
        if not self._state.adding:
            raise TypeError("a TaskVersion never changes: publish a new one")
        super().save(*args, **kwargs)

    @cached_property
    def data(self) -> TaskData:
        """The task as the engine's type."""
        return codec.decode(TaskData, self.document)

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions that a kernel can implement, such as ("forward", "backward")."""
        return tuple(self.document["directions"])

    @property
    def hidden_names(self) -> tuple[str, ...]:
        """Names of the hidden workloads, which admins alone may see."""
        return tuple(w["name"] for w in self.document["workloads"] if w.get("hidden"))
