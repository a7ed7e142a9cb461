"""Links to re-evaluations on the pages of curators."""

from __future__ import annotations

from django.template.context import Context

from runs_app.core.hooks import Filling, Slot, fills
from tasks_app.models import Task


@fills(Slot.CURATED)
def _of_task(context: Context, task: Task, place: str) -> Filling | None:
    """Leads to the best kernels of a task that has a version."""
    if place == "head" or task.current_version_id is None:
        return None
    return Filling("reevaluation/parts/link.html", {"task": task, "place": place})


@fills(Slot.CURATED_MANY)
def _of_many(context: Context) -> Filling:
    """A button for all that are selected."""
    return Filling("reevaluation/parts/button.html", {})
