"""What proves a version of a task sound, or lets it be public without a proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.conf import settings
from django.db import models
from django.db.models import Q

from gpu_runner.data.verdict import DeviceKind
from tasks_app.formats.soundness_report import read_report
from tasks_app.models.task import TaskVersion

_NAMELESS = (
    "its report says that it didn't pass, but not which wrong kernel or filter is the reason"
)
_SURVIVORS, _FLAGGED = 3, 5
"""How many names are said in brief."""


def _some(names: Sequence[str], most: int) -> str:
    """The first of the names; without their direction where all have the same."""
    directions = {name.partition(": ")[0] for name in names if ": " in name}
    shared = f"{directions.pop()}: " if len(directions) == 1 else ""
    shown = [name.removeprefix(shared) for name in names]
    if len(shown) <= most + 1:  # to say "and 1 more" is no shorter
        return ", ".join(shown)
    return f"{', '.join(shown[:most])} and {len(shown) - most} more"


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
    filters = models.PositiveIntegerField(default=0)  # 0: the report has none
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
        words = "sound" if self.passed else "not sound"
        return f"{self.version} on {self.device or self.kind}: {words}"

    @property
    def unknown(self) -> int:
        """How many filters could not tell anything on that host."""
        return sum(finding.get("passed") is None for finding in self.document.get("filters", ()))

    @property
    def untried(self) -> int:
        """How many wrong kernels could not be tried everywhere: nothing is known of them."""
        return sum(mutant.get("state") == "untried" for mutant in self.document.get("mutants", ()))

    @property
    def refusal(self) -> str:
        """Why the version is not sound, with every name; empty if it is."""
        alive, flagged = ", ".join(self.survivors), ", ".join(self.flagged)
        return self._why_not(
            f"{len(self.survivors)} of {self.mutants} wrong kernels pass it: {alive}",
            f"{len(self.flagged)} of {self.filters} filters flag it: {flagged}",
        )

    @property
    def brief_refusal(self) -> str:
        """The same with a few of the names, for pages that have all of them elsewhere."""
        alive, flagged = _some(self.survivors, _SURVIVORS), _some(self.flagged, _FLAGGED)
        flag = "filter flags" if len(self.flagged) == 1 else "filters flag"
        return self._why_not(
            f"{len(self.survivors)} of {self.mutants} wrong kernels pass ({alive})",
            f"{len(self.flagged)} {flag} it: {flagged}",
        )

    def _why_not(self, alive: str, flagged: str) -> str:
        if self.passed:
            return ""
        named = [alive] * bool(self.survivors) + [flagged] * bool(self.flagged)
        return "; ".join([*named, *self._other_faults()]) or _NAMELESS

    def _other_faults(self) -> Iterator[str]:
        if misses := read_report(self.document).misses:
            yield f"its own reference fails ({', '.join(misses)})"
        if not self.mutants:
            yield "its report covers no wrong kernels"
        if not self.filters:
            yield "its report doesn't cover filters: create a new one"


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
        return f"{self.version}: {self.reason}"
