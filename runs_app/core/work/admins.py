"""What decisions of admins have in common, and the doubts about runners that they are told."""

from __future__ import annotations

import logging
from datetime import datetime

from django.contrib.auth.models import User

from runs_app.core.errors import NotAllowed, SubmissionError
from runs_app.core.text import printable
from runs_app.models import Evaluation, RunnerFlag, RunnerToken
from tasks_app.disclosure import sees_hidden

_LONGEST = 500  # characters of a text that stands on each page


def checked_reason(text: str, field: str) -> str:
    """What an admin says, on one line; raises `SubmissionError` for nothing and for too much."""
    words = " ".join(text.split())
    if not words:
        raise SubmissionError(field, "enter a reason: people will read it")
    if len(words) > _LONGEST:
        raise SubmissionError(field, f"has {len(words)} characters; the limit is {_LONGEST}")
    return words


def check_admin(user: User) -> None:
    """Raise `NotAllowed` for anybody but an admin."""
    if not sees_hidden(user):
        raise NotAllowed("", "only admins can do this")


log = logging.getLogger(__name__)

_LONGEST_DOUBT = 1000  # characters


def flag(
    token: RunnerToken, reason: str, *, now: datetime, evaluation: Evaluation | None = None
) -> None:
    """Put a runner in doubt, unless it is for that reason already."""
    text = printable(reason[:_LONGEST_DOUBT])
    log.error("runner %s is under suspicion: %s", token, text)
    opened = RunnerFlag.objects.filter(token=token, cleared_at=None)
    if not opened.filter(reason=text).exists() and opened.count() < MOST:
        RunnerFlag.objects.create(token=token, reason=text, evaluation=evaluation, at=now)


MOST = 20
"""Open reasons of one runner; what comes beyond them is in the log alone."""
