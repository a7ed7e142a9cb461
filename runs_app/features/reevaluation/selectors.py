"""Which versions of a task have results that could be measured again, and the best of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet

from runs_app.core.integrity.eligibility import eligible_on
from runs_app.core.queue.devices import devices
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.models import Device, Evaluation, Submission
from tasks_app.models import Task, TaskVersion


class Key(NamedTuple):
    """What makes two submissions the same entry: ids of author and agent, and the solution."""

    author: int
    agent: int
    digest: str


def key_of(submission: Submission) -> Key:
    """What makes it the same entry as another."""
    return Key(submission.author_id, submission.agent_id, submission.digest)


def reevaluations_of(task: Task) -> QuerySet[Reevaluation]:
    """The task's re-evaluations, newest first; `count` is that of their evaluations."""
    rows = Reevaluation.objects.filter(target__task=task).annotate(count=Count("evaluations"))
    names = rows.select_related("source", "target", "asked_by")
    return names.defer("source__document", "target__document")


def sources_of(task: Task) -> list[TaskVersion]:
    """Versions that are or were public and have results: what to carry on first.

    The newest earlier one comes first, then later ones, the current one last.
    """
    current = task.current_version
    if current is None:
        return []
    public = task.versions.filter(Q(published_at__isnull=False) | Q(pk=current.pk))
    found = [version for version in public.defer("document") if eligible_on(version).exists()]
    return sorted(
        found,
        key=lambda version: (
            version.pk == current.pk, version.number > current.number, -version.number
        ),
    )  # fmt: skip


def devices_of(versions: Iterable[TaskVersion]) -> list[Device]:
    """Devices of this site on which one of the versions has results."""
    found = {
        slug for each in versions for slug in eligible_on(each).values_list("device", flat=True)
    }
    return list(devices().filter(pk__in=found))


def with_names(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """With what tables show of them, and without the long texts."""
    return rows.select_related(
        "device", "submission__author", "submission__agent", "submission__language_model"
    ).defer("submission__source", "submission__files", "reason")


def best_of_agents(rows: Iterable[Evaluation]) -> list[Evaluation]:
    """The best of each device, direction, author and agent; each device's best first."""
    best: dict[tuple[str, str, int, int], Evaluation] = {}
    for row in sorted(rows, key=_order):
        entry = row.submission
        best.setdefault((row.device_id, row.direction, entry.author_id, entry.agent_id), row)
    return sorted(best.values(), key=lambda row: (row.device_id, row.direction, *_order(row)))


def _order(row: Evaluation) -> tuple[float, str]:
    return -(row.merit or 0.0), str(row.pk)
