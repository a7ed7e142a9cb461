"""Versions of drafts: what is measured and reviewed is never the draft but one of these.

Also why the site refuses what the files of a draft say, and the workloads that a runner has found
for an imported file, by running it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from gpu_runner.data.formats.folder import read_folder
from gpu_runner.data.formats.kbench import SPECIFICATION
from gpu_runner.data.formats.kernelbench import has_own_shape_alone
from gpu_runner.data.task import Task as TaskData
from tasks_app.errors import CurationError
from tasks_app.formats.task_writing import write_folder
from tasks_app.models import AuditEntry, Draft, Task, TaskVersion
from tasks_app.people import is_own_agent
from tasks_app.publishing.audit_log import add_entry
from tasks_app.publishing.services import make_current, store_version


@transaction.atomic
def snapshot(*, draft: Draft, now: datetime) -> TaskVersion:
    """The immutable version of exactly the draft's files, made if there is none; it is not public.

    Raises `CurationError` with all faults of the files, or if the name is somebody else's.
    """
    locked = Draft.objects.select_for_update(no_key=True).get(pk=draft.pk)
    if locked.version is not None:
        return locked.version
    if locked.state not in Draft.UNDER_WAY:
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


_TITLE_LIMIT = 200  # the length of `Task.title`


def task_refusals(draft: Draft, data: TaskData | None) -> dict[str, str]:
    """Why the draft's task may not be on this site, by field; empty if it may.

    `data` is the task as its files say it; where they cannot be read the name alone is looked at.
    """
    name = data.name if data else draft.name
    found = {"name": name_refusal(draft, name) if name else ""}
    if data is not None:
        found |= {"title": title_refusal(data.title), **_agent_refusals(draft.author, data)}
    return {field: reason for field, reason in found.items() if reason}


def name_refusal(draft: Draft, name: str) -> str:
    """Why the draft's task may not have this name; empty if it may.

    The name of a task that has never been more than a draft is free for its author, and for
    everybody once all drafts of it are closed.
    """
    is_lost = has_lost_its_task(draft)
    if draft.task is not None and not is_lost:
        keeps = f"must stay {draft.task.slug!r}: versions of it were already made from this draft"
        return "" if name == draft.task.slug else keeps
    if draft.task is not None and name == draft.task.slug:
        return (
            f"another task {name!r} has been loaded or published in the meantime: choose "
            f"another name"
        )
    if "." in name:
        return f"{name!r} contains a '.', which isn't allowed in a task's address"
    task = names_kept_from(draft.author_id).filter(slug=name).first()
    if task is None:
        return ""
    if task.versions.filter(published_at__isnull=False).exists():
        taken = f"a task {name!r} already exists: choose another name"
        return f"{taken} (only admins can begin a task's next version)"
    unseen = "a task that isn't public, such as somebody's draft"
    return f"{name!r} is the name of {unseen}: choose another name"


def title_refusal(title: str) -> str:
    """Why no task on the site may have this title; empty if one may."""
    if len(title) > _TITLE_LIMIT:
        return f"has {len(title)} characters; the limit is {_TITLE_LIMIT}"
    return "" if title.isprintable() else "must be one line of printable characters"


def has_lost_its_task(draft: Draft) -> bool:
    """Whether the task that it was to become is another one by now.

    It was begun as a task of its own, and another version than its own is the task's current one.
    """
    current = draft.task.current_version_id if draft.task is not None else None
    return current not in (None, draft.version_id) and draft.follows_id is None


def names_kept_from(author_id: int) -> QuerySet[Task]:
    """Tasks whose names an author's own tasks may not have."""
    others = Draft.objects.filter(task=OuterRef("pk")).exclude(author=author_id)
    is_written = Exists(others.exclude(state=Draft.State.CLOSED))
    return Task.objects.filter(~Q(state=Task.State.DRAFT) | Q(is_written))


def _agent_refusals(author: User, data: TaskData) -> dict[str, str]:
    """By field, for authors who are no admins: their kernels would count in kbench's figures."""
    if author.is_staff:
        return {}
    return {
        f"kernels[{index}].agent": f"{kernel.agent!r} is reserved for kernels that come with "
        "kbench: enter this kernel's own author"
        for index, kernel in enumerate(data.kernels)
        if is_own_agent(kernel.agent)
    }


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
        reason="its check added workloads of other sizes",
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
