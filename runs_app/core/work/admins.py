"""What all decisions of admins have in common: who may, and a reason that people read."""

from __future__ import annotations

from django.contrib.auth.models import User

from runs_app.core.errors import NotAllowed, SubmissionError
from tasks_app.disclosure import sees_hidden

_LONGEST = 500  # characters of a text that stands on each page


def checked_reason(text: str, field: str) -> str:
    """What an admin says, on one line; raises `SubmissionError` for nothing and for too much."""
    words = " ".join(text.split())
    if not words:
        raise SubmissionError(field, "say why: people read it")
    if len(words) > _LONGEST:
        raise SubmissionError(field, f"has {len(words)} characters; the limit is {_LONGEST}")
    return words


def check_admin(user: User) -> None:
    """Raise `NotAllowed` for anybody but an admin."""
    if not sees_hidden(user):
        raise NotAllowed("", "only admins can do this")
