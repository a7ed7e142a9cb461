"""What people who are no admins may see of tasks and results: hidden workloads stay hidden."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from tasks_app.people import Viewer

HIDDEN = "a hidden workload"
WITHHELD = "where is shown to admins only"
_CODE_SUFFIXES = (".py", ".cu", ".cpp", ".cuh", ".h", ".hpp")

JsonObject = dict[str, Any]


def sees_hidden(user: Viewer | None) -> bool:
    """Whether `user` is an admin, who may see hidden workloads, their seeds and their numbers."""
    return bool(user is not None and user.is_active and user.is_staff)


def admin_of(request: HttpRequest, refusal: str) -> User:
    """The admin who asks; raises `PermissionDenied` with `refusal` for everybody else."""
    if not isinstance(request.user, User) or not sees_hidden(request.user):
        raise PermissionDenied(refusal)
    return request.user


def public_task(document: Mapping[str, Any], *, code_only: bool = False) -> JsonObject:
    """Copy of an encoded task without its hidden workloads.

    A task that has any keeps only the files of code: a configuration file could list the workloads.
    `code_only` asks for the same of a version that is shown beside one that has.
    """
    workloads = [w for w in document["workloads"] if not w.get("hidden")]
    public = {**document, "workloads": workloads}
    if code_only or len(workloads) != len(document["workloads"]):
        public["files"] = {
            path: text for path, text in document["files"].items() if path.endswith(_CODE_SUFFIXES)
        }
    return public


def public_result(document: Mapping[str, Any], hidden_names: Collection[str]) -> JsonObject:
    """Copy of an encoded result without anything that tells of single hidden workloads.

    `hidden_names` are the names of the task's hidden workloads. The means over all hidden workloads
    stay: they are on the leaderboard. Our log of a SYSTEM_ERROR is for admins.
    """
    workloads = document.get("workloads", [])
    names = {*hidden_names, *(w["name"] for w in workloads if w.get("hidden"))}
    return {
        **document,
        "workloads": [w for w in workloads if w["name"] not in names],
        "reason": public_reason(document, names),
        "mismatch": _public_mismatch(document.get("mismatch"), names),
        "environment": public_value(document.get("environment", {}), names),
        "suspicions": public_value(list(document.get("suspicions", [])), names),
        "audit": public_value(document.get("audit"), names),
        "log": "",
    }


def public_soundness(document: Mapping[str, Any], hidden_names: Collection[str]) -> JsonObject:
    """Copy of a soundness report without the names of hidden workloads.

    What was found there stays, and by how much, but not at which place: errors over what is
    allowed, of kernels that the site makes itself, tell a submission neither sizes nor values.
    Most mutants fail first there.
    """
    lists = {
        key: [_public_entry(entry, hidden_names) for entry in document.get(key, [])]
        for key in ("filters", "mutants", "honest")
    }
    unlisted = {
        direction: {**counts, "failed": _public_counts(counts.get("failed", {}), hidden_names)}
        for direction, counts in document.get("unlisted", {}).items()
    }
    return {**document, **lists, "unlisted": unlisted}


def _public_counts(counts: Mapping[str, int], hidden_names: Collection[str]) -> dict[str, int]:
    """The counts by workload, those of hidden ones together."""
    public: dict[str, int] = {}
    for workload, count in counts.items():
        name = HIDDEN if public_text(workload, hidden_names) != workload else workload
        public[name] = public.get(name, 0) + count
    return public


def _public_entry(entry: Mapping[str, Any], hidden_names: Collection[str]) -> JsonObject:
    public = dict(entry)
    public |= {
        key: public_text(entry[key], hidden_names) for key in ("text", "reason") if key in entry
    }
    if entry.get("workload") in hidden_names:
        public["workload"] = HIDDEN
        public |= {"reason": WITHHELD} if "reason" in entry else {}
    return public


def public_reason(document: Mapping[str, Any], hidden_names: Collection[str]) -> str:
    """Reason of an encoded result's verdict, without what it says of a hidden workload.

    What a kernel itself could have chosen, such as an error's text, comes from processes that have
    seen public workloads only: hidden ones run last, apart, and leave no words.
    """
    reason: str = document.get("reason", "")
    mismatch = document.get("mismatch")
    if mismatch and mismatch["workload"] in hidden_names:
        return f"{mismatch['output']!r} is wrong on {HIDDEN}"
    return public_text(reason, hidden_names)


def public_value(value: Any, names: Collection[str]) -> Any:
    """Copy of a JSON value without the entries, and the words, that name hidden workloads."""
    if isinstance(value, str):
        return public_text(value, names)
    if isinstance(value, Mapping):
        return {
            key: public_value(entry, names)
            for key, entry in value.items()
            if public_text(key, names) == key
        }
    if isinstance(value, list):
        return [public_value(entry, names) for entry in value]
    return value


def public_text(text: str, hidden_names: Collection[str]) -> str:
    """Copy of a line for people, without the names of hidden workloads."""
    if not hidden_names:
        return text
    longest_first = sorted(hidden_names, key=len, reverse=True)
    pattern = "|".join(re.escape(name) for name in longest_first)
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", HIDDEN, text)


def public_payload(payload: Mapping[str, Any], hidden_names: Collection[str]) -> JsonObject:
    """Copy of an event's payload without the names of hidden workloads."""
    return {key: public_value(value, hidden_names) for key, value in payload.items()}


def _public_mismatch(mismatch: Mapping[str, Any] | None, names: set[str]) -> JsonObject | None:
    if mismatch is None or mismatch["workload"] not in names:
        return dict(mismatch) if mismatch is not None else None
    return {
        "workload": HIDDEN,
        "output": mismatch["output"],
        "reason": "a wrong element; values of hidden workloads are shown to admins only",
        "index": [],
        "expected": None,
        "actual": None,
        "bound": None,
        "wrong_elements": 0,
        "elements": 0,
        "findings": [],
    }
