"""Tables say once what is the same in every row."""

from __future__ import annotations

from types import SimpleNamespace

from django.template import Context, Template

from tasks_app.columns import Column, Table

TABLE = Table(
    "Row",
    [
        Column("name", head="Name", is_name=True),
        Column("state", head="State"),
        Column("gap", head="Gap"),
        Column("time", head="Time", sort="time"),
    ],
)


def drawn(*times: int, sort: str = "", **same: str) -> str:
    row = {"name": "a", "state": "ranked", "gap": "–", **same}
    rows = [SimpleNamespace(**row, time=time) for time in times]
    text = "{% load tables %}{% table columns rows sort=sort %}"
    page = Template(text).render(Context({"columns": TABLE, "rows": rows, "sort": sort}))
    return " ".join(page.split())


def test_what_repeats_is_said_once_and_dashes_are_not_said() -> None:
    page = drawn(1, 2)
    assert page.count("ranked") == 1
    assert "State ranked" in page
    assert "Gap" not in page
    assert page.count("<td") == 3  # what is the same, and two times


def test_one_row_says_everything_and_the_order_is_always_shown() -> None:
    assert "The same" not in drawn(1)
    assert 'data-label="Time"' in drawn(1, 1, sort="time")
    assert 'data-label="Time"' not in drawn(1, 1)
