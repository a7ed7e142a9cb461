"""Which row an address names: by its id, or by the id's beginning."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404

from runs_app.core.work.access import visible_submissions
from tasks_app.people import Viewer

_SHORT = re.compile(r"[0-9a-f]{8}[0-9a-f-]{0,27}", re.IGNORECASE)
"""Pages, badges and tables show the first eight digits."""


def identity(text: str, user: Viewer) -> UUID:
    """The id of a submission that `user` may see; raises `Http404`."""
    return the_only(text, visible_submissions(user), "submission")


def the_only(text: str, rows: QuerySet[Any], kind: str) -> UUID:
    """A whole id as it is, or the one id of `rows` that begins so; raises `Http404`.

    kind: what the rows are, in a word.
    """
    found = beginning_with(text, rows)
    if found is None:
        raise Http404(
            f"{text!r} is neither a {kind}'s id nor the first eight or more digits of one"
        )
    if len(found) == 1:
        return found[0]
    if found:
        raise Http404(f"several {kind}s have ids that begin with {text!r}; use more digits")
    raise Http404(f"there is no {kind} that you can see whose id begins with {text!r}")


def beginning_with(text: str, rows: QuerySet[Any]) -> list[UUID] | None:
    """A whole id as it is; of a beginning, at most two ids of `rows`. None for any other text."""
    try:
        return [UUID(text)]
    except ValueError:
        pass
    digits = text.replace("-", "").lower()
    if not _SHORT.fullmatch(text) or len(digits) > 31:
        return None
    bounds = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    found = rows.filter(pk__range=bounds).order_by()
    return list(found.values_list("pk", flat=True)[:2])
