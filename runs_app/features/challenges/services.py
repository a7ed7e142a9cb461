"""Create a challenge, enter it, report what an entry has spent, and end it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.text import slugify

from gpu_runner.data.verdict import DeviceKind, Direction
from runs_app.core.errors import NotAllowed, QuotaExceeded, SubmissionError, WrongState
from runs_app.core.queue.devices import resolve_device
from runs_app.core.text import storable
from runs_app.features.challenges.attempts import lock_entry
from runs_app.features.challenges.models import Challenge, Entry, digest_of
from runs_app.features.challenges.settle import end_entry
from runs_app.models import Agent, LanguageModel
from runs_app.submitting.authors import agent_of, language_model_of
from tasks_app.disclosure import sees_hidden
from tasks_app.errors import Faults
from tasks_app.models import AuditEntry, TaskVersion
from tasks_app.people import Viewer
from tasks_app.publishing.audit_log import add_entry
from tasks_app.selectors import find_task, no_task

MOST_TASKS = 50
MOST_EVALUATIONS = 1000
LONGEST_S = 30 * 24 * 3600
MOST_ENTRIES = 50
"""Entries of one person to one challenge."""
TRANSCRIPT_LIMIT_BYTES = 2 << 20
MOST_TOKENS = 10**15
MOST_USD = 1e9
LONGEST_SETTING = 100
_LONGEST_NAME = 100

Author = TypeVar("Author", Agent, LanguageModel, LanguageModel | None)


def may_make(user: Viewer) -> bool:
    """Whether `user` makes challenges: admins do, and who has the right to add them."""
    return sees_hidden(user) or user.has_perm("challenges.add_challenge")


def may_end(user: Viewer, challenge: Challenge) -> bool:
    """Whether `user` may end a challenge before its time."""
    return sees_hidden(user) or (may_make(user) and challenge.made_by_id == user.pk)


@dataclass(frozen=True)
class Plan:
    """A challenge that isn't stored, and the versions of its tasks."""

    challenge: Challenge
    versions: list[TaskVersion]


def plan_challenge(  # noqa: PLR0913 - keywords only: one for each field of the form
    *,
    user: User,
    name: str,
    tasks: Sequence[str],
    device: str,
    evaluations: int,
    wall_time_s: int,
    starts_at: datetime,
    ends_at: datetime,
    now: datetime,
    direction: str = Direction.FORWARD.value,
    usd: float | None = None,
    description: str = "",
    faults: Faults | None = None,
) -> Plan:
    """A challenge over the current versions of these tasks, which nobody sees yet.

    Raises `NotAllowed` for who may make none, `SubmissionError` naming all wrong fields,
    after `faults` that were found before.
    """
    if not may_make(user):
        raise NotAllowed(
            "", "only admins and people they have given permission can create challenges"
        )
    faults = faults or Faults()
    names = faults.of(_names, name)
    target = faults.of(resolve_device, device)
    kind = DeviceKind(target.kind) if target else None
    faults.of(_within, "evaluations", evaluations, MOST_EVALUATIONS)
    faults.of(_within, "wall_time_s", wall_time_s, LONGEST_S)
    if usd is not None and not 0 < usd <= MOST_USD:
        faults.add("usd", f"must be more than 0 and at most {MOST_USD:g}")
    if ends_at <= max(starts_at, now):
        faults.add(
            "ends_at", f"must be {'after the start' if ends_at <= starts_at else 'in the future'}"
        )
    found = [faults.of(_version, slug, direction, kind) for slug in faults.of(_tasks, tasks) or ()]
    faults.tell(SubmissionError)
    assert names and target  # noqa: PT018 - else it was told
    name, slug = names
    challenge = Challenge(
        name=name,
        slug=slug,
        description=storable(description.strip()),
        direction=direction,
        device=target,
        evaluations=evaluations,
        wall_time_s=wall_time_s,
        usd=usd,
        starts_at=starts_at,
        ends_at=ends_at,
        made_by=user,
        created_at=now,
    )
    return Plan(challenge, [version for version in found if version])


@transaction.atomic
def make_challenge(**fields: Any) -> Challenge:
    """Store what `plan_challenge` makes of these fields; everybody sees it from now on."""
    plan = plan_challenge(**fields)
    plan.challenge.save(force_insert=True)
    plan.challenge.versions.set(plan.versions)
    name, user, now = plan.challenge.name, fields["user"], fields["now"]
    add_entry(AuditEntry.Kind.CHALLENGE, now=now, actor=user, about=name)
    return plan.challenge


@transaction.atomic
def enter(
    *,
    challenge: Challenge,
    user: User,
    now: datetime,
    agent: str = "",
    setting: str = "",
    language_model: str = "",
) -> tuple[Entry, str]:
    """Begin an entry; also returns its token, which is stored nowhere and so shown only now.

    The same agent and setting once more is the next repeat. An empty `agent` means the person.
    Raises `WrongState` outside the challenge's dates, `SubmissionError` naming the field.
    """
    locked = Challenge.objects.select_for_update(no_key=True).get(pk=challenge.pk)
    if not locked.is_open(now):
        begun = "has ended" if now >= locked.ends_at else f"starts at {_when(locked.starts_at)}"
        raise WrongState("", f"this challenge {begun}")
    setting = " ".join(storable(setting).split())
    if len(setting) > LONGEST_SETTING:
        raise SubmissionError("setting", f"is longer than {LONGEST_SETTING} characters")
    if locked.entries.filter(user=user).count() >= MOST_ENTRIES:
        reason = f"you have entered {MOST_ENTRIES} times, which is the limit"
        raise QuotaExceeded("", reason, limit="entries")
    known = _listed(agent_of(user, agent, now))
    text = f"kbe_{secrets.token_urlsafe(32)}"
    alike = locked.entries.filter(agent=known, setting=setting)
    entry = Entry.objects.create(
        challenge=locked,
        user=user,
        agent=known,
        language_model=_listed(language_model_of(language_model, now)),
        setting=setting,
        repeat=(alike.order_by("-repeat").values_list("repeat", flat=True).first() or 0) + 1,
        digest=digest_of(text),
        started_at=now,
        deadline_at=min(now + timedelta(seconds=locked.wall_time_s), locked.ends_at),
    )
    return entry, text


@transaction.atomic
def report(
    *,
    entry: Entry,
    now: datetime,
    usd: float | None = None,
    tokens: int | None = None,
    transcript: str | None = None,
) -> Entry:
    """Store what an entry has spent so far, and what its agent said; None leaves it as it is.

    Totals never fall. Until the challenge is closed, also after the entry's end.
    """
    locked = lock_entry(entry)
    if locked.challenge.closed_at is not None:
        raise WrongState("", f"this challenge was closed at {_when(locked.challenge.closed_at)}")
    if usd is not None:
        locked.usd = _total("usd", usd, locked.usd, MOST_USD)
    if tokens is not None:
        locked.tokens = int(_total("tokens", tokens, locked.tokens, MOST_TOKENS))
    changed = ["usd", "tokens"]
    if transcript is not None:
        text = storable(transcript)
        if len(text.encode()) > TRANSCRIPT_LIMIT_BYTES:
            most = TRANSCRIPT_LIMIT_BYTES >> 20
            raise SubmissionError("transcript", f"is larger than {most} MiB")
        locked.transcript = text
        changed.append("transcript")
    locked.save(update_fields=changed)
    return locked


@transaction.atomic
def finish(*, entry: Entry, user: User, now: datetime) -> Entry:
    """End an entry; its best correct kernel of each task is ranked once nothing is measured."""
    locked = lock_entry(entry)
    if locked.user_id != user.pk and not user.is_staff:
        raise NotAllowed("", "only the entry's owner and admins can do this")
    if locked.state != Entry.State.RUNNING:
        raise WrongState("", f"this entry has ended: {locked.reason}")
    by = "finished" if locked.user_id == user.pk else "an admin ended it"
    return end_entry(locked, reason=by, now=now)


@transaction.atomic
def end_challenge(*, challenge: Challenge, user: User, now: datetime) -> Challenge:
    """Let nobody enter any more, and end all entries."""
    locked = Challenge.objects.select_for_update(no_key=True).get(pk=challenge.pk)
    if not may_end(user, locked):
        raise NotAllowed("", "only admins and the challenge's creator can end it")
    if now >= locked.ends_at:
        raise WrongState("", "this challenge has ended")
    if now <= locked.starts_at:
        raise WrongState("", f"this challenge starts at {_when(locked.starts_at)}")
    locked.ends_at = now
    locked.save(update_fields=["ends_at"])
    for entry in locked.entries.filter(state=Entry.State.RUNNING).order_by("pk"):
        running = lock_entry(entry)
        if running.state == Entry.State.RUNNING:
            end_entry(running, reason="the challenge was ended early", now=now)
    return locked


def _listed(author: Author) -> Author:
    """Let everybody know of who takes part."""
    if author is not None and not author.listed:
        author.listed = True
        author.save(update_fields=["listed"])
    return author


def _names(name: str) -> tuple[str, str]:
    name = " ".join(storable(name).split())
    slug = slugify(name)
    if slug in ("", "new") or len(name) > _LONGEST_NAME:
        raise SubmissionError(
            "name", f"must have 1 to {_LONGEST_NAME} characters, including a letter or digit"
        )
    if Challenge.objects.filter(slug=slug).exists() or Challenge.objects.filter(name=name).exists():
        raise SubmissionError("name", "is already taken: choose another one")
    return name, slug


def _tasks(tasks: Sequence[str]) -> list[str]:
    chosen = list(dict.fromkeys(tasks))
    if not 0 < len(chosen) <= MOST_TASKS:
        raise SubmissionError("tasks", f"choose 1 to {MOST_TASKS} tasks")
    return chosen


def _version(slug: str, direction: str, kind: DeviceKind | None) -> TaskVersion:
    task = find_task(slug)
    if task is None or task.current_version is None:
        raise SubmissionError("tasks", no_task(slug))
    version = task.current_version
    if direction not in version.directions:
        have = ", ".join(version.directions)
        raise SubmissionError("direction", f"task {slug} has only: {have}")
    for hidden in (False, True):
        if kind and not version.data.workloads_for(kind, Direction(direction), hidden=hidden):
            which = "hidden" if hidden else "listed"
            lacks = f"has no {which} {direction} workload for this device"
            raise SubmissionError("tasks", f"task {slug} {lacks}")
    return version


def _within(field: str, value: int, most: int) -> None:
    if not 0 < value <= most:
        raise SubmissionError(field, f"must be between 1 and {most}")


def _total(field: str, value: float, before: float | None, most: float) -> float:
    if not (math.isfinite(value) and 0 <= value <= most):
        raise SubmissionError(field, f"must be between 0 and {most:g}")
    if before is not None and value < before:
        raise SubmissionError(field, f"is a total, so it can't be below {before:g}")
    return value


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
