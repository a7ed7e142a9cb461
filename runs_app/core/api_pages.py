"""What answers of the API have in common: pages of lists, and when to ask again."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from runs_app.core.errors import SubmissionError
from tasks_app.api_pages import link_next

_SOONEST_S, _LATEST_S = 1, 10
_SHARE = 0.1  # of the time that it has taken so far

Row = TypeVar("Row", bound=Model)


def ask_again(response: HttpResponse, since: datetime) -> None:
    """Set `Retry-After` based on how long ago something began."""
    waited_s = (timezone.now() - since).total_seconds()
    seconds = min(max(int(waited_s * _SHARE), _SOONEST_S), _LATEST_S)
    response["Retry-After"] = str(seconds)


def newest_first(
    rows: QuerySet[Row],
    request: HttpRequest,
    response: HttpResponse,
    *,
    after: str,
    limit: int,
    by: str = "created_at",
) -> list[Row]:
    """Return at most `limit` rows that are older than the row `after`.

    For the first page, `after` is empty. `by` is the field with a row's creation time. The address
    of the next page is added to the response. Rows that are added while somebody pages through the
    list don't shift it. Raises `SubmissionError` if `after` isn't the id of one of `rows`.
    """
    if after:
        last = _row(rows, after, by)
        same = Q(**{by: last[by]}, pk__lt=last["pk"])
        rows = rows.filter(Q(**{f"{by}__lt": last[by]}) | same)
    found = list(rows.order_by(f"-{by}", "-pk")[: limit + 1])
    if len(found) > limit:
        link_next(request, response, found[limit - 1].pk)
    return found[:limit]


def _row(rows: QuerySet[Row], after: str, by: str) -> dict[str, object]:
    try:
        row = rows.order_by().filter(pk=UUID(after)).values("pk", by).first()
    except ValueError:
        row = None
    if row is None:
        raise SubmissionError(
            "after", "is not an id from this list; use the one in the Link header"
        )
    return row
