"""What answers of the API have in common: pages of lists, and waiting for news."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Field, Schema

from runs_app.errors import SubmissionError
from tasks_app.api_pages import link_next

LONGEST_WAIT_S = 60

Row = TypeVar("Row", bound=Model)


class WaitIn(Schema):
    """Whether to wait until something happens."""

    wait: int = Field(
        0, ge=0, le=LONGEST_WAIT_S, description="Answer when it is over, after so many seconds."
    )
    since: int | None = Field(
        None, ge=0, lt=2**31, description="With wait: answer earlier, at an event after this one."
    )


def newest_first(
    rows: QuerySet[Row],
    request: HttpRequest,
    response: HttpResponse,
    *,
    after: str,
    limit: int,
    by: str = "created_at",
) -> list[Row]:
    """At most `limit` rows that are older than the row `after`, which is empty for the first page.

    `by` is the field that says when a row came to be. Puts the address of the next page on the
    response. Rows that come while somebody turns pages move nothing. Raises
    `SubmissionError` where `after` is no id of one of `rows`.
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
        raise SubmissionError("after", "is no id of this list; take it from the header Link")
    return row
