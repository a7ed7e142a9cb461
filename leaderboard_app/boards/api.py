"""The API's view of the leaderboard."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema, Status

from leaderboard_app.boards import export, selectors
from leaderboard_app.boards.query import By, QueryError, parse_query
from runs_app.api_body import one_of
from tasks_app.spreadsheet import as_csv

router = Router(tags=["leaderboard"])


class Refusal(Schema):
    """Which parameter means nothing, and why."""

    field: str = Field(examples=["device"])
    reason: str


class BoardIn(Schema):
    """What the board is to show; every parameter may be left out."""

    by: str = Field("", description="submission, agent or model", json_schema_extra=one_of("", *By))
    device: str = Field("", description="A device's name; the latest result's, if left out.")
    task: str = ""
    scenario: str = ""
    dtype: str = ""
    direction: str = Field(
        "",
        description="forward or backward, where a task has it",
    )
    p: str = Field("", description="The p of fast_p, 0 to 16; 1 if left out.")
    sort: str = Field("", description="speedup, latency, fast, correct, score or floor")
    verified: str = Field(
        "",
        description="1: only results whose submission passed an audit.",
        json_schema_extra=one_of("", "0", "1", "false", "true"),
    )
    contaminated: str = Field(
        "",
        description="1: with contaminated tasks, which a board over tasks leaves out.",
        json_schema_extra=one_of("", "0", "1", "false", "true"),
    )
    format: str = Field("json", json_schema_extra=one_of("json", "csv"))


class PageIn(Schema):
    """Which of the board's rows."""

    limit: int | None = Field(None, ge=1, description="At most so many rows; all if left out.")
    after: int = Field(0, ge=0, description="Rows to leave out before them.")


class ContaminatedOut(Schema):
    """A task that counts in no figure over tasks."""

    task: str = Field(examples=["softmax"])
    reason: str


class BoardOut(Schema):
    """A ranked board. Rows by submission and rows by agent or model have different fields."""

    by: str
    device: str
    p: float
    sort: str
    verified: bool
    contaminated: bool = Field(description="Whether contaminated tasks were asked for.")
    contaminated_tasks: list[ContaminatedOut] = Field(
        description="Those of this selection; left out unless asked for, or named as `task`."
    )
    problems: int = Field(description="Tasks, each in each of its directions, on this board.")
    rows: list[dict[str, Any]]


_AS_CSV = {"responses": {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}}


@router.get(
    "/leaderboard",
    response={200: BoardOut, 422: Refusal},
    summary="The leaderboard",
    openapi_extra=_AS_CSV,
)
def show_leaderboard(
    request: HttpRequest,
    filters: Query[BoardIn],
    page: Query[PageIn],
) -> Any:
    """Answer with the ranked rows, as JSON or with `format=csv` as a file.

    A page of them is read at the cost of its rows: `limit` of them, `after` so many.
    """
    tasks = selectors.board_tasks()
    try:
        if filters.format not in ("json", "csv"):
            raise QueryError("format", f"{filters.format[:20]!r} is not one of json, csv")
        query = parse_query(filters.dict(), selectors.choices(tasks), selectors.default_device)
    except QueryError as error:
        return Status(422, {"field": error.field, "reason": error.reason})
    board = selectors.board(query, tasks)
    stop = None if page.limit is None else page.after + page.limit
    rows = export.records(board, page.after, stop)
    if filters.format == "csv":
        response = HttpResponse(as_csv(rows), content_type="text/csv; charset=utf-8")
        name = f"kbench-{query.by}-{query.device}.csv"
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        return response
    return {
        "by": query.by.value,
        "device": query.device,
        "p": query.p,
        "sort": query.sort.value,
        "verified": query.verified,
        "contaminated": query.contaminated,
        "contaminated_tasks": [
            {"task": task.slug, "reason": task.contaminated} for task in board.contaminated
        ],
        "problems": len(board.problems),
        "rows": rows,
    }
