"""Drafts of tasks: written by anybody, made into versions to be tried, and published by admins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data.formats.folder import read_folder
from runs_app.features.curation.decisions.services import (
    clean_reason,
    must_curate,
    override_if_unproven,
)
from runs_app.features.curation.drafts.files import (
    changed_paths,
    kept_files,
    limit_refusal,
    said_name,
)
from tasks_app.disclosure import sees_hidden
from tasks_app.errors import CurationError
from tasks_app.formats.task_writing import catalogue_folder, write_folder
from tasks_app.models import AuditEntry, Draft, Task, TaskVersion
from tasks_app.people import Viewer
from tasks_app.publishing.audit_log import add_entry
from tasks_app.publishing.labels import label_imported
from tasks_app.publishing.services import make_current, must_be_seen
from tasks_app.publishing.snapshots import has_lost_its_task, must_fit, read_files, snapshot


@transaction.atomic
def create_draft(
    *, user: User, files: Mapping[str, str], now: datetime, task: Task | None = None
) -> Draft:
    """Keep texts as a new draft, whatever is wrong with what they say.

    With `task` it is a draft of that task's next version, which is for admins. Raises
    `CurationError` for paths and sizes that no task may have, and beyond the user's limit.
    """
    return _create(user, files, now, task, {})


@transaction.atomic
def copy_version(*, version: TaskVersion, user: User, now: datetime) -> Draft:
    """A draft of the task's next version, which begins as a copy of this one; for admins.

    As it was written, comments and sweeps included, where it was written here or is built in.
    """
    return _create(user, _as_written(version), now, version.task, {"version": version.number})


@transaction.atomic
def edit_draft(
    *, draft: Draft, user: User, files: Mapping[str, str], revision: int, now: datetime
) -> Draft:
    """Replace all texts of a draft; they may be wrong in any way.

    `revision` is the one that was edited. Raises `CurationError` with the field "revision" if
    somebody else changed the draft meanwhile. Texts that are the same change nothing. With another
    name it is a task of its own again where the old name stands for another one by now.
    """
    locked = _locked(draft)
    _must_write(locked, user)
    if locked.state != Draft.State.OPEN:
        raise CurationError("", f"it is {_words(locked)}, so its files can't be changed")
    if locked.revision != revision:
        raise CurationError(
            "revision", "it was saved by somebody else, or in another tab, after you opened it"
        )
    kept = kept_files(files)
    changed = changed_paths(locked.files, kept)
    if not changed:
        return locked
    locked.files, locked.version, locked.name = kept, None, said_name(kept)
    is_renamed = locked.task is not None and locked.name not in ("", locked.task.slug)
    if is_renamed and has_lost_its_task(locked):
        locked.task = None
    locked.revision += 1
    locked.changed_at = now
    locked.save()
    details = {"revision": locked.revision, "files": changed}
    add_entry(AuditEntry.Kind.EDITED, now=now, actor=user, draft=locked, details=details)
    return locked


@transaction.atomic
def take_over(*, draft: Draft, user: User, now: datetime) -> Draft:
    """Make somebody else's draft one that admins write on, whose files its author sees no more.

    It may then get hidden workloads. Raises `CurationError` for anybody but admins.
    """
    locked = _locked(draft)
    must_curate(user)
    if locked.state not in Draft.UNDER_WAY:
        raise CurationError("", f"it is {_words(locked)}")
    if locked.taken_by_id is not None or locked.author_id == user.pk:
        raise CurationError("", "admins are already editing it")
    locked.taken_by, locked.changed_at = user, now
    locked.save()
    add_entry(AuditEntry.Kind.TAKEN, now=now, actor=user, draft=locked, version=locked.version)
    return locked


@transaction.atomic
def send_to_review(
    *, draft: Draft, user: User, now: datetime, revision: int | None = None
) -> Draft:
    """Ask admins to decide about a draft without faults; its files then stay as they are.

    `revision` is the one that was looked at: another one is refused.
    """
    locked = _locked(draft)
    _must_write(locked, user)
    if locked.state != Draft.State.OPEN:
        raise CurationError("", f"it is already {_words(locked)}")
    _must_be_as_seen(locked, revision)
    version = snapshot(draft=locked, now=now)
    task = _locked_task(version)
    if task.state == Task.State.PUBLISHED and task.current_version_id == version.pk:
        reason = f"it is the same as version {version.number}, which is public"
        raise CurationError("", reason)
    locked = _locked(draft)
    must_fit(locked, version.data)
    locked.state, locked.changed_at = Draft.State.REVIEW, now
    locked.save()
    if task.state == Task.State.DRAFT:
        _set_state(task, Task.State.REVIEW)
    add_entry(AuditEntry.Kind.SENT, now=now, actor=user, version=version, draft=locked)
    return locked


@transaction.atomic
def send_back(*, draft: Draft, user: User, reason: str, now: datetime) -> Draft:
    """Let a draft in review be changed again, and say why; for admins."""
    locked = _locked(draft)
    must_curate(user)
    _must_be_in_review(locked)
    why = clean_reason(reason, "say what needs to change: its author will read it")
    _leave_review(locked, AuditEntry.Kind.RETURNED, user, why, now)
    return locked


@transaction.atomic
def reopen_draft(*, draft: Draft, user: User, now: datetime) -> Draft:
    """Take a draft back from review to change it; for whoever writes it, who need not say why."""
    locked = _locked(draft)
    _must_write(locked, user)
    _must_be_in_review(locked)
    _leave_review(locked, AuditEntry.Kind.RETURNED, user, "", now)
    return locked


@transaction.atomic
def close_draft(*, draft: Draft, user: User, reason: str, now: datetime) -> Draft:
    """End a draft without publishing it: its author withdraws it, or an admin turns it down."""
    locked = _locked(draft)
    if not (sees_hidden(user) or _writes(locked, user)):
        raise CurationError("", "only its author and admins can close it")
    if locked.state not in Draft.UNDER_WAY:
        raise CurationError("", f"it is already {_words(locked)}")
    why = clean_reason(reason, "say why: its author and other admins will read it")
    _leave_review(locked, AuditEntry.Kind.CLOSED, user, why, now)
    return locked


@transaction.atomic
def publish_draft(  # noqa: PLR0913 - keywords only: what is decided, and what was seen
    *,
    draft: Draft,
    user: User,
    now: datetime,
    override: str = "",
    revision: int | None = None,
    replaces: int | None = None,
    reports: str | None = None,
) -> TaskVersion:
    """Make the version of a draft in review its task's public one; for admins.

    Raises `CurationError` if wrong kernels pass it, a filter flags it, or nobody has shown the
    opposite, unless `override` says why it may go all the same; that is kept and shown. `revision`
    is the one that was looked at, `replaces` the number of the version that was public then, 0 if
    none was, and `reports` the version's `evidence` then: others are refused.
    """
    locked = _locked(draft)
    must_curate(user)
    if locked.state != Draft.State.REVIEW:
        raise CurationError("", f"it is {_words(locked)}: only drafts in review can be published")
    _must_be_as_seen(locked, revision)
    version, data = locked.version, read_files(locked.files)
    if version is None or data.digest() != version.digest:
        reason = "its files have changed since the check: send it back, then to review again"
        raise CurationError("version", reason)
    task = _locked_task(version)
    _must_follow(version, task, replaces)
    must_fit(locked, data)
    must_be_seen(version, reports)
    override_if_unproven(version, override, user, now, locked)
    task.state, task.published_by = Task.State.PUBLISHED, user
    make_current(task, version, now)
    label_imported(versions=[version], now=now)
    locked.state, locked.changed_at = Draft.State.PUBLISHED, now
    locked.save()
    add_entry(AuditEntry.Kind.PUBLISHED, now=now, actor=user, version=version, draft=locked)
    return version


def may_write(draft: Draft, user: Viewer) -> bool:
    """Whether `user` may change the draft's files now."""
    return draft.state == Draft.State.OPEN and _writes(draft, user)


def may_reopen(draft: Draft, user: Viewer) -> bool:
    """Whether `user` may take it back from review."""
    return draft.state == Draft.State.REVIEW and _writes(draft, user)


def _as_written(version: TaskVersion) -> Mapping[str, str]:
    for draft in version.drafts.filter(state=Draft.State.PUBLISHED):
        data, _ = read_folder(draft.files)
        if data is not None and data.digest() == version.digest:
            files: Mapping[str, str] = draft.files
            return files
    return catalogue_folder(version.data) or write_folder(version.data)


def _create(
    user: User,
    files: Mapping[str, str],
    now: datetime,
    task: Task | None,
    details: Mapping[str, Any],
) -> Draft:
    if task is not None:
        must_curate(user)
    _check_limit(user, now)
    kept = kept_files(files)
    public = Task.objects.get(pk=task.pk).current_version if task is not None else None
    draft = Draft.objects.create(
        name=said_name(kept),
        task=task,
        follows=task,
        base_version=public,
        files=kept,
        author=user,
        created_at=now,
        changed_at=now,
    )
    if public is not None:
        details = {**details, "public": public.number}
    add_entry(AuditEntry.Kind.UPLOADED, now=now, actor=user, draft=draft, details=details)
    return draft


def _check_limit(user: User, now: datetime) -> None:
    """Two uploads of one user at the same time take turns, so that both cannot be the last."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if refusal := limit_refusal(user, now):
        raise CurationError("", refusal)


def _locked(draft: Draft) -> Draft:
    return Draft.objects.select_for_update(no_key=True).get(pk=draft.pk)


def _locked_task(version: TaskVersion) -> Task:
    return Task.objects.select_for_update(no_key=True).get(pk=version.task_id)


def _must_be_as_seen(draft: Draft, revision: int | None) -> None:
    if revision not in (None, draft.revision):
        raise CurationError(
            "revision", "its files have changed since you opened it: review them again"
        )


def _must_follow(version: TaskVersion, task: Task, replaces: int | None) -> None:
    """Raise `CurationError` if the task is not what it was when the version was looked at."""
    if task.state == Task.State.RETIRED:
        raise CurationError("", f"the task {task.slug} is retired, so restore it first")
    public = task.current_version.number if task.current_version else 0
    if replaces not in (None, public) and public != version.number:
        reason = f"version {public} has become public since you opened it: look at the differences"
        raise CurationError("replaces", reason)


def _must_be_in_review(draft: Draft) -> None:
    if draft.state != Draft.State.REVIEW:
        raise CurationError("", f"it is {_words(draft)}, not in review")


def _leave_review(
    draft: Draft, kind: AuditEntry.Kind, user: User, reason: str, now: datetime
) -> None:
    """Open a draft again, or close it, as the entry of this kind says."""
    closes = kind is AuditEntry.Kind.CLOSED
    draft.state = Draft.State.CLOSED if closes else Draft.State.OPEN
    draft.last_reason, draft.changed_at = reason, now
    draft.save()
    _no_longer_in_review(draft)
    version = draft.version
    add_entry(kind, now=now, actor=user, version=version, draft=draft, reason=reason)


def _no_longer_in_review(draft: Draft) -> None:
    """A task that was never public and of which no draft is in review is a draft again."""
    if draft.task_id is None:
        return
    task = Task.objects.select_for_update(no_key=True).get(pk=draft.task_id)
    waits = task.drafts.filter(state=Draft.State.REVIEW).exists()
    if task.state == Task.State.REVIEW and task.current_version_id is None and not waits:
        _set_state(task, Task.State.DRAFT)


def _set_state(task: Task, state: Task.State) -> None:
    task.state = state
    task.save(update_fields=["state"])


def _writes(draft: Draft, user: Viewer) -> bool:
    """Its author until an admin took it over; from then on admins."""
    if draft.taken_by_id is None:
        return bool(user.is_active and user.pk == draft.author_id)
    return sees_hidden(user)


def _must_write(draft: Draft, user: User) -> None:
    if _writes(draft, user):
        return
    if sees_hidden(user):
        raise CurationError("", "take it over first, or its author won't know what you changed")
    raise CurationError("", "only its author can edit it until an admin takes it over")


def _words(draft: Draft) -> str:
    return Draft.State(draft.state).label.lower()
