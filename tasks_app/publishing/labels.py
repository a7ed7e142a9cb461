"""Labels of tasks: a difficulty, and tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from gpu_runner.data.task import TaskFormat
from tasks_app.errors import CurationError
from tasks_app.models import AuditEntry, Task, TaskVersion
from tasks_app.publishing.audit_log import add_entry

MOST_TAGS = 10
IMPORTED = "imported"
"""Tag of tasks in another format than kbench's own; the format's name is another one."""

_LONGEST_TAG = 30  # characters
_TAG = re.compile(rf"[a-z0-9-]{{1,{_LONGEST_TAG}}}")


@transaction.atomic
def label_new(*, labels: Mapping[str, tuple[str, list[str]]], now: datetime) -> None:
    """Give tasks that nobody has ever labelled a difficulty and tags, by their names."""
    new = Task.objects.filter(slug__in=labels, difficulty="", tags=[], labelled=False)
    for task in new.select_for_update(no_key=True):
        difficulty, tags = labels[task.slug]
        task.difficulty, task.tags = clean_difficulty(difficulty), clean_tags(tags)
        task.labelled = True
        task.save(update_fields=["tags", "difficulty", "labelled"])
        details: dict[str, Any] = {"tags": {"from": [], "to": task.tags}}
        if task.difficulty:
            details["difficulty"] = {"from": "", "to": task.difficulty}
        add_entry(AuditEntry.Kind.LABELLED, now=now, task=task, details=details)


def label_imported(*, versions: Iterable[TaskVersion], now: datetime) -> None:
    """Tag the tasks of versions in another format, as `label_new` does: their code may be known."""
    formats = {version.task.slug: version.data.format for version in versions}
    labels = {
        slug: ("", [IMPORTED, task_format.value])
        for slug, task_format in formats.items()
        if task_format is not TaskFormat.KBENCH
    }
    label_new(labels=labels, now=now)


def clean_tags(tags: Iterable[str]) -> list[str]:
    """Tags in lower case, sorted and each once; raises `CurationError` for what is none."""
    found = sorted({tag for text in tags if (tag := text.strip().lower())})
    for tag in found:
        if not _TAG.fullmatch(tag):
            shown = tag[: _LONGEST_TAG + 5]
            reason = f"{shown!r} must be 1 to {_LONGEST_TAG} characters from a-z, 0-9 and -"
            raise CurationError("tags", reason)
    if len(found) > MOST_TAGS:
        raise CurationError("tags", f"are {len(found)}; the limit is {MOST_TAGS}")
    return found


def clean_difficulty(difficulty: str) -> str:
    """A difficulty, or nothing; raises `CurationError` for anything else."""
    kept = difficulty.strip().lower()
    if kept and kept not in Task.Difficulty.values:
        known = ", ".join(Task.Difficulty.values)
        raise CurationError("difficulty", f"{kept[:_LONGEST_TAG]!r} is not one of {known}")
    return kept
