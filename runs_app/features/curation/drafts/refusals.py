"""Why a user can't begin another draft, which names are free, and what has overtaken a draft."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User

from tasks_app.models import Draft, TaskVersion
from tasks_app.publishing.snapshots import names_kept_from

_NEW_A_DAY = 4  # times as many as may be open: closed ones are kept


def free_name(name: str, author: User) -> str:
    """The name, with the first number that makes it unlike all tasks and the author's drafts."""
    tasks = names_kept_from(author.pk).filter(slug__startswith=name)
    drafts = Draft.objects.filter(author=author, name__startswith=name, state__in=Draft.UNDER_WAY)
    taken = {*tasks.values_list("slug", flat=True), *drafts.values_list("name", flat=True)}
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in taken)


def limit_refusal(user: User, now: datetime) -> str:
    """Why `user` may not begin another draft now; empty if they may.

    Drafts that an admin has taken over do not count: their author cannot close them.
    """
    if user.is_active and user.is_staff:
        return ""
    limit = settings.MAX_OPEN_DRAFTS_PER_USER
    own = Draft.objects.filter(author=user)
    count = own.filter(state__in=Draft.UNDER_WAY, taken_by=None).count()
    if count >= limit:
        reason = f"you have {count} drafts that are open or in review; the limit is {limit}"
        return f"{reason}: close one first"
    if own.filter(created_at__gt=now - timedelta(days=1)).count() >= limit * _NEW_A_DAY:
        reason = f"you have made {limit * _NEW_A_DAY} drafts in the last 24 hours, the daily limit"
        return f"{reason}: continue an open one, or come back later"
    return ""


def overtaken_by(draft: Draft) -> TaskVersion | None:
    """The task's public version, if another one was public when the draft was begun.

    What that version changed is undone by the draft, unless it has it too.
    """
    task = draft.task
    public = task.current_version if task is not None else None
    if public is None or public.pk == draft.version_id or draft.state not in Draft.UNDER_WAY:
        return None
    return public if draft.base_version_id not in (None, public.pk) else None
