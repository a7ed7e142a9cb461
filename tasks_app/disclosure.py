"""What people who are no admins may see of tasks and results: hidden workloads stay hidden."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from gpu_runner.data.baselines import failure
from gpu_runner.data.evaluation import EvaluationResult, Mismatch, StageTime
from gpu_runner.data.formats.trace_definition import public_files
from gpu_runner.data.integrity import Audit
from gpu_runner.data.rounding import HIDDEN as _ALONE
from gpu_runner.data.rounding import all_three_digits, three_digits
from tasks_app.people import Viewer

HIDDEN = "a hidden workload"
WITHHELD = "only admins can see where"
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
        } | public_files(public)
    return public


def public_result(result: EvaluationResult, hidden_names: Collection[str]) -> EvaluationResult:
    """Copy of a result without anything that tells of single hidden workloads.

    `hidden_names` are the names of the task's hidden workloads. The means over all unlisted ones
    stay: they are on the leaderboard. They and all else to which those have added are told in few
    digits. Our log of a SYSTEM_ERROR is for admins.
    """
    names = {*hidden_names, *(w.name for w in result.workloads if w.hidden)}
    environment = result.environment
    blocks = tuple(b for b in environment.blocks if not b.name.startswith(_ALONE))
    failed = {name: failure(text) for name, text in environment.baseline_errors.items()}
    environment = replace(environment, blocks=blocks, baseline_errors=failed)
    # How often the same is said of hidden workloads would tell on how many it is so.
    return replace(
        result,
        workloads=tuple(w for w in result.workloads if w.name not in names),
        reason=public_reason(result, names),
        mismatch=_public_mismatch(result.mismatch, names),
        unlisted_speedups=all_three_digits(result.unlisted_speedups),
        environment=public_value(environment, names),
        suspicions=tuple(dict.fromkeys(public_value(result.suspicions, names))),
        hints=tuple(dict.fromkeys(public_value(result.hints, names))),
        stages=tuple(_public_stage(stage) for stage in result.stages),
        audit=_public_audit(public_value(result.audit, names)),
        log="",
    )


def _public_stage(stage: StageTime) -> StageTime:
    began, took = three_digits(stage.started_s), three_digits(stage.duration_s)
    return replace(stage, started_s=began, duration_s=took)


def _public_audit(audit: Audit | None) -> Audit | None:
    if audit is None:
        return None
    checks = (replace(c, duration_s=three_digits(c.duration_s)) for c in audit.checks)
    return replace(audit, checks=tuple(checks))


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


def public_reason(result: EvaluationResult, hidden_names: Collection[str]) -> str:
    """Reason of a result's verdict, without what it says of a hidden workload.

    What a kernel itself could have chosen, such as an error's text, comes from processes that have
    seen listed workloads only: hidden ones run last, apart, and leave no words.
    """
    if result.mismatch and result.mismatch.workload in hidden_names:
        return (
            f"correct on all listed workloads, but {result.mismatch.output!r} is wrong on {HIDDEN}"
        )
    return public_text(result.reason, hidden_names)


def public_value(value: Any, names: Collection[str]) -> Any:
    """Copy of a value without the entries, and the words, that name hidden workloads.

    Of JSON, or of dataclasses.
    """
    if isinstance(value, str):
        return value if isinstance(value, Enum) else public_text(value, names)
    if is_dataclass(value) and not isinstance(value, type):
        known = {each.name: getattr(value, each.name) for each in fields(value)}
        return replace(value, **{name: public_value(known[name], names) for name in known})
    if isinstance(value, tuple):
        return tuple(public_value(entry, names) for entry in value)
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


def public_payload(payload: Mapping[str, object], hidden_names: Collection[str]) -> JsonObject:
    """Copy of an event's payload without the names of hidden workloads."""
    return {key: public_value(value, hidden_names) for key, value in payload.items()}


def _public_mismatch(mismatch: Mismatch | None, names: set[str]) -> Mismatch | None:
    if mismatch is None or mismatch.workload not in names:
        return mismatch
    reason = "an element is wrong; only admins see values of hidden workloads"
    return Mismatch(workload=HIDDEN, output=mismatch.output, reason=reason)
