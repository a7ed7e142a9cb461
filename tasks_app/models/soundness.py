"""What proves a version of a task sound, or lets it be public without a proof."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.db import models
from django.db.models import Q

from gpu_runner.data.verdict import DeviceKind
from tasks_app.models.task import TaskVersion
from tasks_app.soundness_report import read_report


class Soundness(models.Model):
    """A soundness report of a version: wrong kernels made from its reference, and its filters.

    There is one for each kind of device, because each has workloads and honest kernels of its own.
    `document` is the whole report of `python -m gpu_runner filter`; a newer one replaces it.
    """

    version = models.ForeignKey(TaskVersion, on_delete=models.CASCADE, related_name="reports")
    kind = models.CharField(
        max_length=10, choices=[(kind.value, kind.value) for kind in DeviceKind]
    )
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
        """A report passes only if mutants and filters were tried, and none speaks against it.

        What speaks against its version comes first, then the newest.
        """

        ordering = ("passed", "-created_at", "-pk")
        constraints = (
            models.UniqueConstraint(fields=("version", "kind"), name="soundness_once_a_kind"),
            models.CheckConstraint(
                condition=Q(passed=False)
                | Q(survivors=[], mutants__gt=0, flagged=[], filters__gt=0),
                name="soundness_passed_without_fault",
            ),
        )

    def __str__(self) -> str:
        """Version, device and outcome."""
        words = "sound" if self.passed else "not sound"
        return f"{self.version} on {self.device or self.kind}: {words}"

    @property
    def unknown(self) -> int:
        """How many filters could not tell anything on that host."""
        return sum(finding.get("passed") is None for finding in self.document.get("filters", ()))

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
