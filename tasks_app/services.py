"""Publish versions of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.task import Task as TaskData
from tasks_app.models import Task, TaskVersion


@dataclass(frozen=True)
class Publication:
    """A version that is now its task's current one; `is_new` if it did not exist before."""

    version: TaskVersion
    is_new: bool


@transaction.atomic
def publish(*, data: TaskData, now: datetime) -> Publication:
    """Make `data` the current version of its task; an unchanged task gets no new version."""
    task, _ = Task.objects.get_or_create(
        slug=data.name,
        defaults={"title": data.title, "scenario": data.scenario, "created_at": now},
    )
    Task.objects.select_for_update().get(pk=task.pk)
    digest = data.digest()
    version = TaskVersion.objects.filter(digest=digest).first()
    is_new = version is None
    if version is None:
        version = TaskVersion.objects.create(
            task=task,
            number=task.versions.count() + 1,
            digest=digest,
            document=codec.encode(data),
            abi=data.abi.value,
            dtype=data.dtype,
            created_at=now,
        )
    task.title, task.scenario, task.current_version = data.title, data.scenario, version
    task.save(update_fields=["title", "scenario", "current_version"])
    return Publication(version, is_new)


def publish_all(*, tasks: Iterable[TaskData], now: datetime) -> list[Publication]:
    """Publish several tasks."""
    return [publish(data=data, now=now) for data in tasks]
