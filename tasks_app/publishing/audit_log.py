"""The audit log of what admins and curators did."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.contrib.auth.models import User

from tasks_app.models import AuditEntry, Draft, Task, TaskVersion


def add_entry(  # noqa: PLR0913 - keywords only: one for each thing that an entry is about
    kind: AuditEntry.Kind,
    *,
    now: datetime,
    actor: User | None = None,
    task: Task | None = None,
    version: TaskVersion | None = None,
    draft: Draft | None = None,
    about: str = "",
    reason: str = "",
    details: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Add an entry to the audit log; call it in the transaction that does what it tells of.

    The task is that of the version or the draft where it is left out. Without an actor it was a
    command on the site's machine. `about` names what is no task: a runner, a person.
    """
    subject = task or (version.task if version else None) or (draft.task if draft else None)
    return AuditEntry.objects.create(
        kind=kind,
        name=subject.slug if subject else (draft.name if draft else about),
        actor=actor,
        task=subject,
        version=version,
        draft=draft,
        reason=reason,
        details=dict(details or {}),
        created_at=now,
    )


def details_text(details: Mapping[str, object]) -> str:
    """An entry's details in words: "difficulty: changed from easy to hard; tags: set to gemm".

    They are sorted by name, because databases do not keep the order.
    """
    return "; ".join(
        f"{name}: {_detail_text(value)}"
        for name, value in sorted(details.items())
        if value is not None
    )


def _detail_text(value: object) -> str:
    if value in ("", [], {}, None):
        return "none"
    if isinstance(value, list):
        return ", ".join(_detail_text(each) for each in value)
    if isinstance(value, dict) and set(value) == {"from", "to"}:
        return _change_text(value["from"], value["to"])
    if isinstance(value, dict):
        return " ".join(f"{name} {_detail_text(each)}" for name, each in sorted(value.items()))
    return str(value)


def _change_text(before: object, after: object) -> str:
    """What became of a setting, either of which may be empty."""
    if not before:
        return f"set to {_detail_text(after)}"
    if not after:
        return f"removed; it was {_detail_text(before)}"
    return f"changed from {_detail_text(before)} to {_detail_text(after)}"


def forget_name(before: str, after: str) -> None:
    """Call somebody who has deleted the account by another name, in entries about accounts."""
    kinds = (AuditEntry.Kind.ACCOUNT, AuditEntry.Kind.QUOTA)
    AuditEntry.objects.filter(kind__in=kinds, name=before).update(name=after)
