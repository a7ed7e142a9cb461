"""One decision about many tasks: what it would change, and doing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from runs_app.features.curation.decisions import services as curation
from tasks_app import selectors
from tasks_app.errors import CurationError
from tasks_app.models import AuditEntry, Draft, Task
from tasks_app.publishing import labels


class Action(StrEnum):
    """What can be done to many tasks at once."""

    PUBLISH = "publish"
    RETIRE = "retire"
    RESTORE = "restore"
    CONTAMINATE = "contaminate"
    CLEAR = "clear"
    DIFFICULTY = "difficulty"
    ADD_TAG = "add-tag"
    REMOVE_TAG = "remove-tag"


_KINDS = {
    Action.RETIRE: AuditEntry.Kind.RETIRED,
    Action.RESTORE: AuditEntry.Kind.RESTORED,
    Action.CONTAMINATE: AuditEntry.Kind.CONTAMINATED,
    Action.CLEAR: AuditEntry.Kind.CLEARED,
}
_ACTS: Mapping[Action, Callable[..., Task]] = {
    Action.RETIRE: curation.retire,
    Action.RESTORE: curation.restore,
    Action.CONTAMINATE: curation.mark_contaminated,
    Action.CLEAR: curation.clear_contamination,
}
_NEEDS_REASON = (Action.PUBLISH, Action.RETIRE, Action.CONTAMINATE)


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """An action with what it needs; `difficulty` and `tag` count for the actions about them."""

    action: Action
    reason: str = ""
    difficulty: str = ""
    tag: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became, or would become, of one task; it stays as it is if `refusal` says why.

    draft: where it is decided instead.
    """

    task: Task
    refusal: str = ""
    draft: Draft | None = None


def read_bulk(*, action: str, reason: str = "", difficulty: str = "", tag: str = "") -> Bulk:
    """The decision that a form asks for; raises `CurationError` naming the field."""
    if action not in list(Action):
        raise CurationError("action", "choose an action")
    chosen = Action(action)
    kept = curation.optional_reason(reason)
    if chosen in _NEEDS_REASON:
        kept = curation.clean_reason(kept, "say why")
    if chosen is Action.DIFFICULTY:
        difficulty = labels.clean_difficulty(difficulty)
    if chosen in (Action.ADD_TAG, Action.REMOVE_TAG):
        tag = _tag(tag)
    return Bulk(action=chosen, reason=kept, difficulty=difficulty, tag=tag)


def _tag(text: str) -> str:
    try:
        tags = labels.clean_tags([text])
    except CurationError as error:
        raise CurationError("tag", error.reason) from None
    if not tags:
        raise CurationError("tag", "enter a tag")
    return tags[0]


def preview(bulk: Bulk, tasks: Iterable[Task]) -> list[Outcome]:
    """What the decision would do to each of the tasks as they stand."""
    return [_outcome(bulk, task) for task in tasks]


def decide_many(*, bulk: Bulk, tasks: Iterable[Task], user: User, now: datetime) -> list[Outcome]:
    """Do it to each task to which it can be done; each is a transaction of its own."""
    curation.must_curate(user)
    return [_decide(bulk, task, user, now) for task in tasks]


def _decide(bulk: Bulk, task: Task, user: User, now: datetime) -> Outcome:
    """What is refused only by now, such as for a report that has just come, is an outcome, too."""
    try:
        return _done(bulk, task, user, now)
    except CurationError as error:
        return Outcome(task=task, refusal=f"stays as it is: {error.reason}")


@transaction.atomic
def _done(bulk: Bulk, task: Task, user: User, now: datetime) -> Outcome:
    locked = Task.objects.select_for_update(no_key=True).get(pk=task.pk)
    outcome = _outcome(bulk, locked)
    if outcome.refusal:
        return outcome
    given: dict[str, Any] = {"task": locked, "user": user, "reason": bulk.reason, "now": now}
    if act := _ACTS.get(bulk.action):
        act(**given)
    elif bulk.action is Action.PUBLISH:
        version = locked.current_version
        assert version is not None, "what is refused without a version never gets here"
        curation.make_public(version=version, **given)
    else:
        tags, difficulty = _labels(bulk, locked)
        curation.label(tags=tags, difficulty=difficulty, **given)
    return outcome


def _outcome(bulk: Bulk, task: Task) -> Outcome:
    draft = None
    if bulk.action is Action.PUBLISH:
        draft = selectors.drafts_of_new([task]).get(task.pk)
    return Outcome(task=task, refusal=_refusal(bulk, task, draft), draft=draft)


def _refusal(bulk: Bulk, task: Task, draft: Draft | None) -> str:
    if kind := _KINDS.get(bulk.action):
        return curation.refusal(kind, task)
    if bulk.action is Action.PUBLISH:
        return _publish_refusal(task, draft)
    tags, difficulty = _labels(bulk, task)
    if (tags, difficulty) == (list(task.tags), task.difficulty):
        return "already is"
    if len(tags) > labels.MOST_TAGS:
        return f"already has {labels.MOST_TAGS} tags, which is the limit"
    return ""


def _publish_refusal(task: Task, draft: Draft | None) -> str:
    """Why its current version is not made public; that it is unproven is overridden one by one.

    A first version is published on its draft's page, which shows what it is.
    """
    if draft is not None and draft.version is not None:
        state = Draft.State(draft.state).label.lower()
        number = draft.version.number
        return f"stays as it is: version {number} belongs to a draft whose state is “{state}”"
    if task.current_version is None:
        return "has no version that can be made public"
    if reason := curation.public_refusal(task, task.current_version):
        return f"stays as it is: {reason}"
    unproven = task.current_version.briefly_unproven
    return f"is not proven sound: {unproven}" if unproven else ""


def _labels(bulk: Bulk, task: Task) -> tuple[list[str], str]:
    tags = set(task.tags)
    if bulk.action is Action.ADD_TAG:
        tags.add(bulk.tag)
    elif bulk.action is Action.REMOVE_TAG:
        tags.discard(bulk.tag)
    chosen = bulk.difficulty if bulk.action is Action.DIFFICULTY else task.difficulty
    return sorted(tags), chosen
