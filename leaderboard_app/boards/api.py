"""The API's view of the leaderboard."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema, Status
from pydantic import create_model

from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.groups import Over
from leaderboard_app.boards.query import FLAGS, By, QueryError, parse_query
from leaderboard_app.boards.query import Query as BoardQuery
from leaderboard_app.boards.tables import BRIEF_TABLES, TABLES
from runs_app.core.api_body import one_of
from tasks_app import spreadsheet
from tasks_app.api_pages import Fault, link_next
from tasks_app.columns import Record
from tasks_app.numbers import counted

router = Router(tags=["leaderboard"])


def _flag(description: str) -> Any:
    words = one_of("", "0", "1", "false", "true")
    return Field("", description=description, json_schema_extra=words)


_FEW = 20  # chosen: brief rows have some 330 bytes, so an agent reads at most 8 KB


class BoardIn(Schema):
    """What to show on the board; all parameters are optional."""

    by: str = Field(
        "",
        description="What each row shows. Default: submission if you filter by task, agent or"
        " language model; otherwise leaders.",
        json_schema_extra=one_of("", *By),
    )
    over: str = Field(
        "",
        description="For agent and model: the problems on which each one is judged.",
        json_schema_extra=one_of("", *Over),
    )
    device: str = Field(
        "", description="Name of a device. Default: the device of the latest result."
    )
    task: str = ""
    scenario: str = ""
    dtype: str = ""
    direction: str = Field(
        "",
        description="forward or backward, if the task has it. A board for one task shows one"
        " direction; the default is forward.",
    )
    who: str = Field(
        "",
        description="Whose kernels to show.",
        json_schema_extra=one_of("", "person", "agent", "shipped"),
    )
    agent: str = Field("", description="Only kernels by the agent with this name.")
    model: str = Field("", description="Only kernels by the language model with this name.")
    since: str = Field(
        "", description="Results from this day (UTC) or later.", examples=["2026-11-25"]
    )
    until: str = Field("", description="Results from this day (UTC) or earlier.")
    p: str = Field("", description="The p of fast_p, from 0 to 16; default: 1.")
    sort: str = Field(
        "", description="speedup, latency, fast, correct, score, floor, newest or task"
    )
    verified: str = _flag("1: show only results whose submission passed an audit.")
    trusted: str = _flag("1: show only results from runners that the site's admins control.")
    same_bits: str = _flag(
        "1: show only results that gave the same bits for the same input in their audit."
    )
    batch_bits: str = _flag(
        "1: show only results that gave the same bits in a smaller batch in their audit."
    )
    graph: str = _flag("1: show only results that worked in a CUDA graph in their audit.")
    contaminated: str = _flag("1: include contaminated tasks, which boards across tasks leave out.")
    format: str = Field("json", json_schema_extra=one_of("json", "csv", "parquet"))


class PageIn(Schema):
    """Which rows of the board to return, and how much of each."""

    limit: int | None = Field(
        None,
        ge=1,
        description=f"Maximum number of rows; default: {_FEW}, or all in files or with fields=all.",
    )
    after: int = Field(0, ge=0, description="Number of rows to skip.")
    fields: Literal["", "all"] = Field(
        "",
        description="all: every column, including intervals. Files always have every column.",
    )


class ContaminatedOut(Schema):
    """A task that doesn't count in figures over several tasks."""

    task: str = Field(examples=["softmax"])
    reason: str


class _BoardOut(Schema):
    """A board; `by` says what its rows stand for."""

    by: str
    device: str
    p: float
    sort: str
    verified: bool
    trusted: bool
    same_bits: bool
    batch_bits: bool
    graph: bool
    contaminated: bool = Field(description="Whether you asked for contaminated tasks.")
    contaminated_tasks: list[ContaminatedOut] = Field(
        description="Contaminated tasks in this selection. Boards leave them out unless you set"
        " `contaminated` or filter by such a task."
    )
    problems: int = Field(description="Tasks on this board; each direction counts as one.")
    total: int = Field(
        description="Number of rows on the whole board; the Link header points to the next page."
    )
    left_out: str = Field(
        description="What is left out here, and how to get it; empty if nothing is."
    )


_KINDS = (*TABLES.values(), *BRIEF_TABLES.values())
_ROWS: Any = reduce(or_, (list[table.schema] for table in _KINDS))  # type: ignore[name-defined]
BoardOut = create_model("BoardOut", __base__=_BoardOut, __doc__=_BoardOut.__doc__, rows=_ROWS)


_FILE = {"schema": {"type": "string", "format": "binary"}}
_FILES = {"text/csv": {"schema": {"type": "string"}}, "application/vnd.apache.parquet": _FILE}
_AS_FILES = {"responses": {200: {"content": _FILES}}}


@router.get(
    "/leaderboard",
    response={200: BoardOut, 422: Fault},
    summary="The leaderboard",
    openapi_extra=_AS_FILES,
)
def show_leaderboard(
    request: HttpRequest,
    answer: HttpResponse,
    filters: Query[BoardIn],
    page: Query[PageIn],
) -> object:
    """Return the rows as JSON or, with `format=csv` or `format=parquet`, as a file.

    JSON is brief: it contains the first rows and the most important columns. `fields=all` returns
    everything.
    """
    tasks = selectors.board_tasks()
    try:
        _check_format(filters.format)
        query = parse_query(filters.dict(), selectors.choices(tasks), selectors.default_device)
    except QueryError as error:
        return Status(422, {"field": error.field, "reason": error.reason})
    board = board_of(query, tasks)
    whole = board.whole
    is_brief = filters.format == "json" and not page.fields
    limit = page.limit or (_FEW if is_brief else len(whole))
    stop = page.after + limit
    if stop < len(whole):
        link_next(request, answer, stop)
    table = (BRIEF_TABLES if is_brief else TABLES)[query.by]
    rows = [table.record(row) for row in whole[page.after : stop]]
    if filters.format != "json":
        file = _file(rows, query, filters.format)
        if "Link" in answer:
            file["Link"] = answer["Link"]
        return file
    return {
        "by": query.by.value,
        "device": query.device,
        "p": query.p,
        "sort": query.sort.value,
        **{name: getattr(query, name) for name in FLAGS},
        "contaminated_tasks": [
            {"task": task.slug, "reason": task.contaminated} for task in board.contaminated
        ],
        "problems": len(board.problems),
        "total": len(whole),
        "left_out": _left_out(len(whole) - len(rows), is_brief=is_brief),
        "rows": [table.schema(**row) for row in rows],
    }


def _left_out(rows: int, *, is_brief: bool) -> str:
    words = [f"{counted(rows, 'row')}: use limit and after"] if rows > 0 else []
    return "; ".join(words + (["columns, including intervals: use fields=all"] if is_brief else []))


def _check_format(format: str) -> None:
    if format not in ("json", "csv", "parquet"):
        raise QueryError("format", f"{format[:20]!r} is not one of json, csv, parquet")
    if format == "parquet" and (reason := spreadsheet.missing_parquet()):
        raise QueryError("format", reason)


def _file(rows: list[Record], query: BoardQuery, format: str) -> HttpResponse:
    fields = TABLES[query.by].fields
    if format == "csv":
        text = TABLES[query.by].csv(rows)
        response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    else:
        content = spreadsheet.as_parquet(rows, fields)
        response = HttpResponse(content, content_type="application/vnd.apache.parquet")
    name = f"kbench-{query.by}-{query.device}.{format}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
