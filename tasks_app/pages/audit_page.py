"""The audit log as its page shows it: in words, filtered, and as a file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from tasks_app.models import AuditEntry, Task
from tasks_app.numbers import counted
from tasks_app.parameters import Choice
from tasks_app.people import shown_name
from tasks_app.publishing.audit_log import details_text

Details = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class AuditLine:
    """Entries of one person in a row that are alike; `count` is how many, `entry` the newest."""

    entry: AuditEntry
    count: int = 1
    since: datetime
    files: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What was done: "Edited, 18 times"."""
        entry = self.entry
        begun = entry.kind == AuditEntry.Kind.UPLOADED and "public" in entry.details
        words = "Started the next version" if begun else str(entry.get_kind_display())
        return f"{words}, {self.count} times" if self.count > 1 else words

    @property
    def details(self) -> str:
        """What else there is to know, without names of files; empty if nothing."""
        words = _DETAILS.get(self.entry.kind)
        return words(self.entry.details) if words is not None else ""


def audit_lines(
    entries: Iterable[AuditEntry], *, with_files: bool, grouped: bool = True
) -> list[AuditLine]:
    """Entries, those where one person saved a draft several times in a row as one line."""

    def alike(entry: AuditEntry) -> object:
        is_saving = grouped and entry.kind == AuditEntry.Kind.EDITED and entry.draft_id is not None
        return (entry.draft_id, entry.actor_id) if is_saving else entry.pk

    lines = []
    for _, group in itertools.groupby(entries, key=alike):
        rows = list(group)
        names = (
            {name for row in rows for name in map(str, row.details.get("files", ()))}
            if with_files
            else set()
        )
        since = rows[-1].created_at
        lines.append(
            AuditLine(entry=rows[0], count=len(rows), since=since, files=tuple(sorted(names)))
        )
    return lines


def _begun(details: Details) -> str:
    if details.get("version"):
        return f"from version {details['version']}"
    return f"version {details['public']} was public at the time" if details.get("public") else ""


def _checked(details: Details) -> str:
    return f"on {details['device']}" if details.get("device") else ""


def _tried(details: Details) -> str:
    kernels = counted(details["kernels"], "kernel") if "kernels" in details else ""
    return f"{kernels} {_checked(details)}".strip()


def _loaded(details: Details) -> str:
    devices = [str(device) for device in details.get("reports", ())]
    if not devices:
        return ""
    return f"with {counted(len(devices), 'soundness report')} from {', '.join(devices)}"


def _state_words(details: Details) -> str:
    """The state before or after: "it was published", "it is in review"."""
    verb, state = ("was", details.get("from")) if "from" in details else ("is", details.get("to"))
    return f"it {verb} {Task.State(state).label.lower()}" if state in Task.State.values else ""


def _as_stored(details: Details) -> str:
    return details_text({name.replace("_", " "): each for name, each in details.items()})


_OF_THE_SITE = (
    AuditEntry.Kind.SIGN_UP,
    AuditEntry.Kind.INVITED,
    AuditEntry.Kind.ACCOUNT,
    AuditEntry.Kind.QUOTA,
    AuditEntry.Kind.SWITCHED,
    AuditEntry.Kind.STEERED,
    AuditEntry.Kind.RUNNER_ADDED,
    AuditEntry.Kind.RUNNER_REVOKED,
    AuditEntry.Kind.RUNNER_CLEARED,
    AuditEntry.Kind.EMPTIED,
    AuditEntry.Kind.ANNOUNCED,
    AuditEntry.Kind.MODEL,
    AuditEntry.Kind.DECIDED,
)
_DETAILS: Mapping[str, Callable[[Details], str]] = {
    AuditEntry.Kind.UPLOADED: _begun,
    AuditEntry.Kind.CHECKED: _checked,
    AuditEntry.Kind.CANCELLED: _checked,
    AuditEntry.Kind.JUDGED: lambda details: str(details.get("language model", "")),
    AuditEntry.Kind.TRIED: _tried,
    AuditEntry.Kind.CHANGED_VERSION: lambda d: (
        f"instead of version {d['from']}" if d.get("from") else ""
    ),
    AuditEntry.Kind.RETIRED: _state_words,
    AuditEntry.Kind.RESTORED: _state_words,
    AuditEntry.Kind.CLEARED: lambda d: f"it was marked because: {d['was']}" if d.get("was") else "",
    AuditEntry.Kind.LABELLED: _as_stored,
    AuditEntry.Kind.REEVALUATED: lambda d: (
        counted(d["evaluations"], "evaluation") if "evaluations" in d else ""
    ),
    AuditEntry.Kind.LOADED: _loaded,
    **dict.fromkeys(_OF_THE_SITE, _as_stored),
}
"""What is said of an entry of this kind; of others nothing is left to say."""


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
        "person": (*names, (SITE, "The site's own commands")),
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
