"""Questions that pages and the API ask about tasks."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from tasks_app.disclosure import public_task, sees_hidden
from tasks_app.models import Task, TaskVersion


def published_tasks() -> QuerySet[Task]:
    """Tasks that take submissions, with their current versions, by name."""
    return (
        Task.objects.filter(state=Task.State.PUBLISHED, current_version__isnull=False)
        .select_related("current_version")
        .order_by("slug")
    )


def find_task(slug: str) -> Task | None:
    """The published task of that name, or None."""
    return published_tasks().filter(slug=slug).first()


def task_document(version: TaskVersion, user: Any) -> dict[str, Any]:
    """The encoded task as `user` may see it."""
    if sees_hidden(user):
        return dict(version.document)
    return public_task(version.document)
