"""Tasks and their immutable versions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.urls import reverse

from gpu_runner.data import codec, verdict
from gpu_runner.data.task import Task as TaskData

if TYPE_CHECKING:
    from tasks_app.models.soundness import Override, Soundness


class Task(models.Model):
    """A kernel problem; what it asks for stands in its versions.

    `published_by` is the admin who made the current version public, empty where a command on the
    site's machine did. `labelled` stays true once somebody, or a command, has labelled the task.
    """

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
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    why_retired = models.TextField(blank=True)  # empty while it is not retired
    labelled = models.BooleanField(default=False)
    difficulty = models.CharField(max_length=10, choices=Difficulty.choices, blank=True)
    tags = models.JSONField(default=list, blank=True)  # words in lower case, sorted
    contaminated = models.TextField(blank=True)  # why it counts in no aggregate; empty if it does
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        """Address of the task's page."""
        return reverse("task", args=[self.slug])


_MOST_KNOWN = 10_000
_hidden_names: dict[str, tuple[str, ...]] = {}
"""By digest, which stands for all of a version: it never changes."""


class TaskVersion(models.Model):
    """An immutable snapshot of a task: all scores attach to it.

    `published_at` alone is set later: when it first became its task's public version. `origin` is
    the file or folder on the site's machine after which an import has named the task.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, unique=True)
    document = models.JSONField()
    abi = models.CharField(max_length=10, choices=[(v.value, v.value) for v in verdict.Abi])
    dtype = models.CharField(max_length=20)
    origin = models.TextField(blank=True)
    created_at = models.DateTimeField()
    published_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("task", "-number")
        constraints = (
            models.UniqueConstraint(fields=("task", "number"), name="task_version_number"),
        )

    def __str__(self) -> str:
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
    def report(self) -> Soundness | None:
        """Its soundness report that decides: the newest that speaks against it, or the newest."""
        return next(iter(self.reports.all()), None)

    @property
    def evidence(self) -> str:
        """Which reports there are, and of when: another text once one is stored or replaced."""
        rows = sorted((report.pk, report.created_at) for report in self.reports.all())
        return " ".join(f"{key}@{moment.isoformat()}" for key, moment in rows)

    @property
    def override(self) -> Override | None:
        """An admin's word that it may be public all the same, if it came after that report.

        What a later report finds, nobody has answered for yet.
        """
        newest, report = next(iter(self.overrides.all()), None), self.report
        if newest is None or (report is not None and newest.created_at < report.created_at):
            return None
        return newest

    @property
    def unproven(self) -> str:
        """Why this version may not be published; empty if it may.

        It may if on no kind of device a mutant of its reference survives or a filter flags it, as
        far as reports say, of which there must be one; or if an admin said why it may anyway.
        """
        return self._why_not(lambda report: report.refusal)

    @property
    def briefly_unproven(self) -> str:
        """The same with a few of the names of wrong kernels and filters, for pages."""
        return self._why_not(lambda report: report.brief_refusal)

    def _why_not(self, words: Callable[[Soundness], str]) -> str:
        if self.override is not None:
            return ""
        reports = self.reports.all()
        if not reports:
            return "it has no soundness report, so nobody has shown that it rejects wrong kernels"
        against = [report for report in reports if report.refusal]
        if len(reports) == 1:
            return "".join(map(words, against))
        return "; ".join(f"on {report.device}, {words(report)}" for report in against)

    @property
    def without_hidden(self) -> tuple[str, ...]:
        """Kinds of devices that it has listed workloads for and no hidden ones."""
        public, hidden = (
            {
                kind
                for workload in self.data.workloads
                if workload.hidden is which
                for kind in workload.devices
            }
            for which in (False, True)
        )
        return tuple(sorted(public - hidden))

    @property
    def unseen(self) -> tuple[str, ...]:
        """Kinds of devices that it has workloads for and no report of; none without any report."""
        looked_at = {report.kind for report in self.reports.all()}
        kinds = {kind for workload in self.data.workloads for kind in workload.devices}
        return tuple(sorted(kinds - looked_at)) if looked_at else ()

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions that a kernel can implement, such as ("forward", "backward")."""
        return tuple(self.document["directions"])

    @property
    def hidden_names(self) -> tuple[str, ...]:
        """Names of the hidden workloads, which admins alone may see; the document is read once."""
        known = _hidden_names.get(self.digest)
        if known is None:
            known = tuple(w["name"] for w in self.document["workloads"] if w.get("hidden"))
            if len(_hidden_names) >= _MOST_KNOWN:
                _hidden_names.clear()
            _hidden_names[self.digest] = known
        return known
