"""Questions that pages and the API ask about tasks."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from tasks_app.disclosure import public_soundness, public_task, sees_hidden
from tasks_app.models import Soundness, Task, TaskVersion


def published_tasks() -> QuerySet[Task]:
    """Tasks that take submissions, with their current versions, by name."""
    return evaluable_tasks(None)


def evaluable_tasks(user: Any) -> QuerySet[Task]:
    """Tasks that take submissions of `user`: admins may try those in review as well."""
    states = [Task.State.PUBLISHED, *([Task.State.REVIEW] if sees_hidden(user) else [])]
    return (
        Task.objects.filter(state__in=states, current_version__isnull=False)
        .select_related("current_version")
        .order_by("slug")
    )


def tasks_in_review(user: Any) -> QuerySet[Task]:
    """Tasks that are not public yet, for admins; none for others."""
    return evaluable_tasks(user).filter(state=Task.State.REVIEW)


def find_task(slug: str, user: Any = None) -> Task | None:
    """The task of that name if it is published, or `user` is an admin and it is in review."""
    return evaluable_tasks(user).filter(slug=slug).first()


def task_document(version: TaskVersion, user: Any) -> dict[str, Any]:
    """The encoded task as `user` may see it."""
    if sees_hidden(user):
        return dict(version.document)
    return public_task(version.document)


def soundness_document(soundness: Soundness, user: Any) -> dict[str, Any]:
    """The soundness report as `user` may see it."""
    if sees_hidden(user):
        return dict(soundness.document)
    return public_soundness(soundness.document, soundness.version.hidden_names)
