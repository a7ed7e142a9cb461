"""Takes the workloads that a runner has found for an imported file, by running it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data.formats.kbench import SPECIFICATION
from gpu_runner.data.formats.kernelbench import has_own_shape_alone
from gpu_runner.data.task import Task as TaskData
from tasks_app.formats.task_writing import write_folder
from tasks_app.models import AuditEntry, Draft, Task, TaskVersion
from tasks_app.publishing.audit_log import add_entry
from tasks_app.publishing.services import make_current, store_version


@transaction.atomic
def take_varied(*, version: TaskVersion, data: TaskData, user: User, now: datetime) -> TaskVersion:
    """The version that holds `data`, which is `version` with further workloads.

    It takes the place of `version` in drafts that are open or in review, and in a task that waits
    in review. `user` had it checked. Raises `DataError` where it cannot be written as a folder.
    """
    if data.digest() == version.digest:
        return version
    files = write_folder(data)
    locked = version.drafts.select_for_update(no_key=True)
    drafts = list(locked.filter(state__in=Draft.UNDER_WAY))
    task, varied, _ = store_version(data, now, state=version.task.state)
    if task.state == Task.State.REVIEW and task.current_version_id == version.pk:
        make_current(task, varied, now)
    for draft in drafts:
        draft.files, draft.version, draft.changed_at = files, varied, now
        draft.revision += 1
        draft.save()
        draft.versions.add(varied)
        _note(varied, user, now, draft)
    if not drafts:
        _note(varied, user, now, None)
    return varied


def _note(version: TaskVersion, user: User, now: datetime, draft: Draft | None) -> None:
    details = {} if draft is None else {"revision": draft.revision, "files": [SPECIFICATION]}
    add_entry(
        AuditEntry.Kind.EDITED,
        version=version,
        draft=draft,
        actor=user,
        reason="its check has added workloads of other sizes",
        details=details,
        now=now,
    )


def as_varied(data: TaskData) -> TaskData:
    """An imported file as the task's current version has it: with the workloads found since.

    `data` itself where the file is another one, or has none.
    """
    if not has_own_shape_alone(data):
        return data
    known = Task.objects.filter(slug=data.name).select_related("current_version").first()
    current = known.current_version if known is not None else None
    if current is None:
        return data
    found = current.data
    same = replace(found, workloads=data.workloads).digest() == data.digest()
    return found if same else data
