"""The trail of what curators did, in words: acts that are alike as one, details without keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tasks_app.models import Act, Task

Details = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TrailEntry:
    """Acts of one person in a row that are alike; `count` is how many, `act` the newest."""

    act: Act
    count: int = 1
    since: datetime
    files: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What was done: "Edited, 18 times"."""
        act = self.act
        begun = act.kind == Act.Kind.UPLOADED and "public" in act.details
        words = "Began a next version" if begun else str(act.get_kind_display())
        return f"{words}, {self.count} times" if self.count > 1 else words

    @property
    def details(self) -> str:
        """What else there is to know, without names of files; empty if nothing."""
        words = _DETAILS.get(self.act.kind)
        return words(self.act.details) if words is not None else ""


def trail_entries(
    acts: Iterable[Act], *, with_files: bool, grouped: bool = True
) -> list[TrailEntry]:
    """Acts, those where one person saved a draft several times in a row as one entry."""

    def alike(act: Act) -> object:
        is_saving = grouped and act.kind == Act.Kind.EDITED
        return (act.draft_id, act.actor_id) if is_saving else act.pk

    entries = []
    for _, group in itertools.groupby(acts, key=alike):
        rows = list(group)
        names = {name for row in rows for name in _names(row.details)} if with_files else set()
        since = rows[-1].created_at
        entries.append(
            TrailEntry(act=rows[0], count=len(rows), since=since, files=tuple(sorted(names)))
        )
    return entries


def _names(details: Mapping[str, Any]) -> list[str]:
    return [str(name) for name in details.get("files", ())]


def _begun(details: Details) -> str:
    if details.get("version"):
        return f"from version {details['version']}"
    return f"version {details['public']} was public then" if details.get("public") else ""


def _checked(details: Details) -> str:
    return f"on {details['device']}" if details.get("device") else ""


def _tried(details: Details) -> str:
    kernels = _counted(details["kernels"], "kernel") if "kernels" in details else ""
    return f"{kernels} {_checked(details)}".strip()


def _loaded(details: Details) -> str:
    devices = [str(device) for device in details.get("reports", ())]
    if not devices:
        return ""
    return f"with {_counted(len(devices), 'soundness report')} from {', '.join(devices)}"


def _changed_version(details: Details) -> str:
    return f"instead of version {details['from']}" if details.get("from") else ""


def _cleared(details: Details) -> str:
    return f"it had been marked because: {details['was']}" if details.get("was") else ""


def _labelled(details: Details) -> str:
    return "; ".join(_change(name, details[name]) for name in sorted(details))


def _reevaluated(details: Details) -> str:
    return _counted(details["evaluations"], "evaluation") if "evaluations" in details else ""


def _state_words(details: Details) -> str:
    """The state before or after: "it was published", "it is in review"."""
    verb, state = ("was", details.get("from")) if "from" in details else ("is", details.get("to"))
    return f"it {verb} {Task.State(state).label.lower()}" if state in Task.State.values else ""


def _change(name: str, values: Mapping[str, Any]) -> str:
    return f"{name}: from {_shown(values.get('from'))} to {_shown(values.get('to'))}"


def _shown(value: Any) -> str:
    shown = ", ".join(value) if isinstance(value, list) else str(value or "")
    return shown or "none"


def _counted(count: Any, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


_DETAILS: Mapping[str, Callable[[Details], str]] = {
    Act.Kind.UPLOADED: _begun,
    Act.Kind.CHECKED: _checked,
    Act.Kind.CANCELLED: _checked,
    Act.Kind.JUDGED: lambda details: str(details.get("language model", "")),
    Act.Kind.TRIED: _tried,
    Act.Kind.CHANGED_VERSION: _changed_version,
    Act.Kind.RETIRED: _state_words,
    Act.Kind.RESTORED: _state_words,
    Act.Kind.CLEARED: _cleared,
    Act.Kind.LABELLED: _labelled,
    Act.Kind.REEVALUATED: _reevaluated,
    Act.Kind.LOADED: _loaded,
}
"""What is said of an act of this kind; of others nothing is left to say."""
