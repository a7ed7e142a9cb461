"""The audit log as its page shows it: filtered, and as a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from tasks_app.models import AuditEntry, Task
from tasks_app.parameters import Choice
from tasks_app.people import shown_name
from tasks_app.publishing.audit_log import details_text

FILTERS = ("task", "person", "kind")
RECORD_FIELDS = ("at", "kind", "task", "version", "draft", "person", "reason", "details")
"""Columns of the log as a file."""
SITE = "-"
"""Stands for the commands on the site's machine where the log is filtered by person."""


def audit_entries(filters: Mapping[str, str]) -> QuerySet[AuditEntry]:
    """The entries that fit the filters, newest first."""
    entries = AuditEntry.objects.select_related("actor", "task", "version", "draft").defer(
        "version__document", "draft__files"
    )
    if filters.get("task"):
        entries = entries.filter(_of_task(filters["task"]))
    if filters.get("kind"):
        entries = entries.filter(kind=filters["kind"])
    if person := filters.get("person"):
        entries = (
            entries.filter(actor=None) if person == SITE else entries.filter(actor__username=person)
        )
    return entries.order_by("-created_at", "-pk")


def _of_task(name: str) -> Q:
    """Acts of the task of that name and of its drafts; by what they say where there is none.

    A draft may name a task that is not its own: what is done to it is none of that task's entries.
    """
    if not Task.objects.filter(slug=name).exists():
        return Q(name=name)
    return Q(task__slug=name) | Q(task=None, draft__task__slug=name)


def choices(filters: Mapping[str, str]) -> list[Choice]:
    """The filters by person and kind; tasks are typed."""
    people = User.objects.filter(pk__in=AuditEntry.objects.order_by().values("actor")).order_by(
        "username"
    )
    names = tuple((name, name) for name in people.values_list("username", flat=True))
    options = {
        "person": (*names, (SITE, "Commands of the site")),
        "kind": tuple(AuditEntry.Kind.choices),
    }
    labels = {"person": "Person", "kind": "Kind"}
    return [
        Choice(name=name, label=labels[name], value=filters[name], options=options[name])
        for name in options
    ]


def records(entries: Iterable[AuditEntry]) -> list[dict[str, Any]]:
    """Acts as flat records for a file."""
    return [
        {
            "at": entry.created_at.isoformat(),
            "kind": entry.kind,
            "task": entry.name,
            "version": entry.version.number if entry.version else None,
            "draft": str(entry.draft_id) if entry.draft_id else None,
            "person": shown_name(entry.actor) or None,
            "reason": entry.reason,
            "details": details_text(entry.details),
        }
        for entry in entries
    ]
