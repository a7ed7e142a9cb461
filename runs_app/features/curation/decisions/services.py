"""What admins decide about tasks: whether they take part and count, their labels and versions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from tasks_app.disclosure import sees_hidden
from tasks_app.errors import CurationError
from tasks_app.models import AuditEntry, Draft, Task, TaskVersion
from tasks_app.publishing.audit_log import add_entry
from tasks_app.publishing.labels import clean_difficulty, clean_tags, label_imported
from tasks_app.publishing.services import make_current, must_be_seen, override_gate

LONGEST_REASON = 2000  # characters

_IN_USE = (Task.State.PUBLISHED, Task.State.REVIEW)


@transaction.atomic
def retire(*, task: Task, user: User, reason: str, now: datetime) -> Task:
    """Take a task out of use: it takes no submissions and stands on no board; history stays."""
    locked = _locked(task, user, AuditEntry.Kind.RETIRED)
    why = clean_reason(reason, "say why you're retiring it")
    details = {"from": locked.state}
    locked.state, locked.why_retired = Task.State.RETIRED, why
    locked.save(update_fields=["state", "why_retired"])
    add_entry(
        AuditEntry.Kind.RETIRED,
        now=now,
        actor=user,
        task=locked,
        version=locked.current_version,
        reason=why,
        details=details,
    )
    return locked


@transaction.atomic
def restore(*, task: Task, user: User, now: datetime, reason: str = "") -> Task:
    """Take a retired task into use again, in review if its version is not proven sound.

    As with loading, a version that was public without a report may be so again, but not one whose
    report speaks against it.
    """
    locked = _locked(task, user, AuditEntry.Kind.RESTORED)
    why = optional_reason(reason)
    version = locked.current_version
    assert version is not None, "what is refused without a version never gets here"
    was_public = version.published_at is not None
    sound = not version.unproven or (was_public and version.report is None)
    locked.state = Task.State.PUBLISHED if sound else Task.State.REVIEW
    locked.why_retired = ""
    make_current(locked, version, now)
    details = {"to": locked.state}
    add_entry(
        AuditEntry.Kind.RESTORED,
        now=now,
        actor=user,
        task=locked,
        version=version,
        reason=why,
        details=details,
    )
    return locked


@transaction.atomic
def mark_contaminated(*, task: Task, user: User, reason: str, now: datetime) -> Task:
    """Leave a task out of every figure over tasks, because its answers are known too well.

    Its own board, its submissions and its history stay, and it goes on to take submissions.
    """
    locked = _locked(task, user, AuditEntry.Kind.CONTAMINATED)
    locked.contaminated = clean_reason(reason, "say why it shouldn't count; everybody sees it")
    locked.save(update_fields=["contaminated"])
    why = locked.contaminated
    add_entry(AuditEntry.Kind.CONTAMINATED, now=now, actor=user, task=locked, reason=why)
    return locked


@transaction.atomic
def clear_contamination(*, task: Task, user: User, now: datetime, reason: str = "") -> Task:
    """Let a task count again."""
    locked = _locked(task, user, AuditEntry.Kind.CLEARED)
    why = optional_reason(reason)
    details = {"was": locked.contaminated}
    locked.contaminated = ""
    locked.save(update_fields=["contaminated"])
    add_entry(
        AuditEntry.Kind.CLEARED, now=now, actor=user, task=locked, reason=why, details=details
    )
    return locked


@transaction.atomic
def label(
    *, task: Task, user: User, tags: Iterable[str], difficulty: str, now: datetime, reason: str = ""
) -> Task:
    """Set a task's tags and its difficulty, which may be empty; the same again is not logged."""
    must_curate(user)
    locked = Task.objects.select_for_update(no_key=True).get(pk=task.pk)
    after: dict[str, Any] = {"tags": clean_tags(tags), "difficulty": clean_difficulty(difficulty)}
    why = optional_reason(reason)
    before = {"tags": list(locked.tags), "difficulty": locked.difficulty}
    changed = {
        name: {"from": before[name], "to": after[name]}
        for name in after
        if before[name] != after[name]
    }
    if not changed:
        return locked
    locked.tags, locked.difficulty, locked.labelled = after["tags"], after["difficulty"], True
    locked.save(update_fields=["tags", "difficulty", "labelled"])
    add_entry(
        AuditEntry.Kind.LABELLED, now=now, actor=user, task=locked, reason=why, details=changed
    )
    return locked


@transaction.atomic
def make_public(  # noqa: PLR0913 - keywords only: what is decided, and what was seen
    *,
    task: Task,
    version: TaskVersion,
    user: User,
    reason: str,
    now: datetime,
    override: str = "",
    reports: str | None = None,
) -> TaskVersion:
    """Make a stored version the task's public one, be it an older one or one that never was.

    Raises `CurationError` with the field "override" if the version is not proven sound and
    `override` does not say why it may go all the same; that is kept and shown. `reports` is the
    version's `evidence` that was looked at: with another one it is refused.
    """
    must_curate(user)
    locked = Task.objects.select_for_update(no_key=True).get(pk=task.pk)
    if version.task_id != locked.pk:
        raise CurationError("version", f"belongs to another task, not to {locked.slug}")
    if why_not := public_refusal(locked, version):
        raise CurationError("version", why_not)
    why = clean_reason(reason, "say why this version should be public")
    must_be_seen(version, reports)
    override_if_unproven(version, override, user, now)
    before = locked.current_version if locked.state == Task.State.PUBLISHED else None
    details = {"from": before.number if before else None, "to": version.number}
    kind = AuditEntry.Kind.CHANGED_VERSION if before else AuditEntry.Kind.PUBLISHED
    locked.state, locked.published_by = Task.State.PUBLISHED, user
    make_current(locked, version, now)
    label_imported(versions=[version], now=now)
    add_entry(kind, now=now, actor=user, version=version, reason=why, details=details)
    return version


def override_if_unproven(
    version: TaskVersion, override: str, user: User, now: datetime, draft: Draft | None = None
) -> None:
    """Keep why a version that isn't proven sound may be public; raises `CurationError` without."""
    if not version.unproven:
        return
    if not override.strip():
        raise CurationError("override", version.briefly_unproven)
    why = clean_reason(override, "")
    override_gate(version=version, user=user, reason=why, now=now)
    kind = AuditEntry.Kind.OVERRIDDEN
    add_entry(kind, now=now, actor=user, version=version, draft=draft, reason=why)


def refusal(kind: AuditEntry.Kind, task: Task) -> str:
    """Why this cannot be done to the task as it stands; empty if it can, and for other kinds."""
    state = f"is {Task.State(task.state).label.lower()}"
    if kind is AuditEntry.Kind.RETIRED and (
        task.state not in _IN_USE or task.current_version_id is None
    ):
        return state if task.state == Task.State.RETIRED else f"{state}: close its draft instead"
    if kind is AuditEntry.Kind.RESTORED and task.state != Task.State.RETIRED:
        return f"{state}, not retired"
    if kind is AuditEntry.Kind.RESTORED and task.current_version_id is None:
        return "has no version that can be made public"
    if kind is AuditEntry.Kind.CONTAMINATED and task.contaminated:
        return f"is marked contaminated: {task.contaminated}"
    if kind is AuditEntry.Kind.CLEARED and not task.contaminated:
        return "is not marked contaminated"
    return ""


def public_refusal(task: Task, version: TaskVersion) -> str:
    """Why a version cannot be made public, its soundness apart; empty if it can."""
    if task.state == Task.State.RETIRED:
        return "the task is retired, so restore it first"
    if task.state == Task.State.PUBLISHED and task.current_version_id == version.pk:
        return f"version {version.number} is public"
    drafts = version.drafts.filter(state__in=Draft.UNDER_WAY)
    if version.published_at is None and (draft := drafts.defer("files").first()):
        state = Draft.State(draft.state).label.lower()
        return (
            f"version {version.number} belongs to a draft whose state is “{state}”:"
            " publish the draft"
        )
    return ""


def clean_reason(reason: str, missing: str) -> str:
    """The reason as it is stored; raises `CurationError`, with `missing` if there is none."""
    kept = optional_reason(reason)
    if not kept:
        raise CurationError("reason", missing)
    return kept


def must_curate(user: User) -> None:
    """Raises `CurationError` for anybody but admins."""
    if not sees_hidden(user):
        raise CurationError("", "only admins can do that")


def optional_reason(reason: str) -> str:
    """The reason as it is stored, which may be empty; raises `CurationError` if it is too long."""
    kept = reason.replace("\0", "").strip()
    if len(kept) > LONGEST_REASON:
        raise CurationError("reason", f"has {len(kept)} characters; the limit is {LONGEST_REASON}")
    return kept


def _locked(task: Task, user: User, kind: AuditEntry.Kind) -> Task:
    """The task, locked, if `user` may do this to it as it stands."""
    must_curate(user)
    locked = Task.objects.select_for_update(no_key=True).get(pk=task.pk)
    if why_not := refusal(kind, locked):
        raise CurationError("", f"{locked.slug} {why_not}")
    return locked
