"""Versions of drafts: what is measured and reviewed is never the draft but one of these."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from gpu_runner.data.formats.folder import read_folder
from gpu_runner.data.task import Task as TaskData
from tasks_app.errors import CurationError
from tasks_app.models import Draft, Task, TaskVersion
from tasks_app.publishing.refusals import task_refusals, title_refusal
from tasks_app.publishing.services import store_version


@transaction.atomic
def snapshot(*, draft: Draft, now: datetime) -> TaskVersion:
    """The immutable version of exactly the draft's files, made if there is none; it is not public.

    Raises `CurationError` with all faults of the files, or if the name is somebody else's.
    """
    locked = Draft.objects.select_for_update(no_key=True).get(pk=draft.pk)
    if locked.version is not None:
        return locked.version
    if locked.state not in (Draft.State.OPEN, Draft.State.REVIEW):
        raise CurationError("", f"it is {locked.get_state_display().lower()}")
    data = read_files(locked.files)
    if refusal := title_refusal(data.title):  # before the database, which holds no longer one
        raise CurationError("title", refusal)
    task, version, _ = store_version(data, now, state=Task.State.DRAFT)
    # asked behind the task's lock: two drafts may take a name in the same moment
    must_fit(locked, data)
    locked.task, locked.version, locked.name = task, version, data.name
    locked.save()
    locked.versions.add(version)
    return version


def read_files(files: Mapping[str, str]) -> TaskData:
    """The task that a draft's files say; raises `CurationError` with all of their faults."""
    data, faults = read_folder(files)
    if faults or data is None:
        raise CurationError.of((fault.field, fault.reason) for fault in faults)
    return data


def must_fit(draft: Draft, data: TaskData) -> None:
    """Raise `CurationError` with all reasons for which the site does not take the task."""
    if refusals := task_refusals(draft, data):
        raise CurationError.of(refusals.items())
