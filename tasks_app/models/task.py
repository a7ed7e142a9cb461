"""Tasks, their immutable versions, and what proves these sound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from gpu_runner.data import codec, verdict
from gpu_runner.data.task import Task as TaskData
from gpu_runner.data.verdict import DeviceKind
from tasks_app.soundness_report import read_report


class Task(models.Model):
    """A kernel problem; what it asks for stands in its versions."""

    class State(models.TextChoices):
        """Where the task stands in its curation."""

        DRAFT = "draft", "Draft"
        REVIEW = "review", "In review"
        PUBLISHED = "published", "Published"
        RETIRED = "retired", "Retired"

    class Difficulty(models.TextChoices):
        """How hard it is to be fast at it, as its curators see it."""

        EASY = "easy", "Easy"
        MEDIUM = "medium", "Medium"
        HARD = "hard", "Hard"

    slug = models.SlugField(max_length=100, unique=True)
    title = models.CharField(max_length=200)
    scenario = models.CharField(max_length=50, default="other", db_index=True)
    state = models.CharField(max_length=20, choices=State.choices, default=State.PUBLISHED)
    current_version = models.ForeignKey(
        "TaskVersion", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    difficulty = models.CharField(max_length=10, choices=Difficulty.choices, blank=True)
    tags = models.JSONField(default=list, blank=True)  # words in lower case, sorted
    contaminated = models.TextField(blank=True)  # why it counts in no aggregate; empty if it does
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
    """An immutable snapshot of a task: all scores attach to it.

    `published_at` alone is set later: when it first became its task's public version.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, unique=True)
    document = models.JSONField()
    abi = models.CharField(max_length=10, choices=[(v.value, v.value) for v in verdict.Abi])
    dtype = models.CharField(max_length=20)
    created_at = models.DateTimeField()
    published_at = models.DateTimeField(null=True, blank=True)

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
    def unproven(self) -> str:
        """Why this version may not be published; empty if it may.

        It may if no mutant of its reference survives and no filter flags it, or if an admin said
        why it may anyway.
        """
        report = Soundness.objects.filter(version=self).first()
        if self.override_of(report) is not None:
            return ""
        if report is None:
            return "nobody has shown that wrong kernels fail it: there is no soundness report of it"
        return report.refusal

    def override_of(self, report: Soundness | None) -> Override | None:
        """An admin's word that it may be public all the same, if it came after this report.

        What a later report finds, nobody has answered for yet.
        """
        newest = next(iter(self.overrides.all()), None)
        if newest is None or (report is not None and newest.created_at < report.created_at):
            return None
        return newest

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions that a kernel can implement, such as ("forward", "backward")."""
        return tuple(self.document["directions"])

    @property
    def hidden_names(self) -> tuple[str, ...]:
        """Names of the hidden workloads, which admins alone may see."""
        return tuple(w["name"] for w in self.document["workloads"] if w.get("hidden"))


class Soundness(models.Model):
    """The soundness report of a version: wrong kernels made from its reference, and its filters.

    `document` is the whole report of `python -m gpu_runner filter`; a newer one replaces it.
    """

    version = models.OneToOneField(TaskVersion, on_delete=models.CASCADE, related_name="soundness")
    passed = models.BooleanField()
    mutants = models.PositiveIntegerField()
    survivors = models.JSONField()  # names
    filters = models.PositiveIntegerField(default=0)  # 0: made before there were any
    flagged = models.JSONField(default=list)  # names
    device = models.CharField(max_length=100, blank=True)  # where it was measured
    # A runner of this site made it, so that no report that comes with kbench replaces it.
    made_here = models.BooleanField(default=False)
    document = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        """A report passes only if mutants and filters were tried, and none speaks against it."""

        constraints = (
            models.CheckConstraint(
                condition=Q(passed=False)
                | Q(survivors=[], mutants__gt=0, flagged=[], filters__gt=0),
                name="soundness_passed_without_fault",
            ),
        )

    def __str__(self) -> str:
        """Version and outcome."""
        return f"{self.version}: {'sound' if self.passed else 'not sound'}"

    @property
    def unknown(self) -> int:
        """How many filters could not tell anything on that host."""
        return sum(finding.get("passed") is None for finding in self.document.get("filters", ()))

    @property
    def unseen(self) -> str:
        """The kind of device whose workloads the report did not look at; empty if there is none."""
        looked_at = DeviceKind.CPU if self.device == DeviceKind.CPU else DeviceKind.CUDA
        kinds = {kind for workload in self.version.data.workloads for kind in workload.devices}
        others = kinds - {looked_at} if self.device else set()
        return next(iter(others), "")

    @property
    def refusal(self) -> str:
        """Why the version is not sound; empty if it is."""
        if self.passed:
            return ""
        known = "; ".join(self._faults())
        return known or "its report says that it did not pass, without naming a mutant or a filter"

    def _faults(self) -> Iterator[str]:
        if self.survivors:
            names = ", ".join(self.survivors)
            yield f"{len(self.survivors)} of {self.mutants} wrong kernels pass it: {names}"
        if self.flagged:
            names = ", ".join(self.flagged)
            yield f"{len(self.flagged)} of {self.filters} filters flag it: {names}"
        if misses := read_report(self.document).misses:
            yield f"its own reference is off, {', '.join(misses)}"
        if not self.mutants:
            yield "its report tries no wrong kernel"
        if not self.filters:
            yield "its report says nothing of filters: make it again"


class Override(models.Model):
    """Why a version was published that nobody has proven sound, and who said so.

    `decided_by` is empty where a command on the site's machine did.
    """

    version = models.ForeignKey(TaskVersion, on_delete=models.CASCADE, related_name="overrides")
    reason = models.TextField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    created_at = models.DateTimeField()

    class Meta:
        """The newest comes first; none is without a reason."""

        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(condition=~Q(reason=""), name="override_has_a_reason"),
        )

    def __str__(self) -> str:
        """Version and reason."""
        return f"{self.version}: {self.reason}"
