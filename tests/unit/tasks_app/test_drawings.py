"""Small pictures: where their points stand, and what they say. Tables say once what repeats."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import pytest
from django.template import Context, Template

from tasks_app import drawings
from tasks_app.columns import Column, Table


def rendered(tag: str, **context: object) -> str:
    return Template("{% load drawing %}" + tag).render(Context(context))


@pytest.mark.parametrize(
    ("values", "options", "path"),
    [
        ([1.0, 2.0, 3.0], {}, "M3.0 17.0L50.0 10.0L97.0 3.0"),
        ([1.0, 2.0, 4.0], {"log": True}, "M3.0 17.0L50.0 10.0L97.0 3.0"),
        ([1.0, 3.0], {"steps": True}, "M3.0 17.0H97.0V3.0"),
    ],
)
def test_a_trend_begins_left_and_rises_with_its_values(
    values: list[float], options: dict[str, Any], path: str
) -> None:
    drawn = drawings.trend(values, width=100, height=20, **options)
    assert drawn is not None
    assert (drawn.path, drawn.x, drawn.y) == (path, 97.0, 3.0)
    assert drawn.area.endswith("V20.0H3.0Z")


def test_a_single_value_is_a_dot_and_a_constant_one_a_level_line() -> None:
    alone = drawings.trend([7.0])
    assert alone is not None
    assert alone.path == alone.area == ""
    level = drawings.trend([2.0, 2.0], height=20)
    assert level is not None
    assert level.y == 10.0
    for values in ([], [None], [math.nan, math.inf], [0.0, -1.0]):
        assert drawings.trend(values, log=True) is None
        assert rendered("{% trend values 'x' log=True %}", values=values).strip() == ""


def test_an_axis_holds_its_ratios_and_one() -> None:
    shared = drawings.axis([0.3, 5.0, None, math.inf, 0.0])
    assert (shared.low, shared.high) == (-2, 3)
    assert shared.place(0.25) == 0.0
    assert shared.place(8.0) == shared.place(100.0) == shared.width
    assert shared.one == pytest.approx(shared.width * 2 / 5)
    assert [words for _, words in shared.ticks()] == ["1/4×", "1/2×", "1×", "2×", "4×", "8×"]
    assert shared.ticks()[0][0] == 0.0
    assert shared.ticks()[-1][0] == 100.0
    narrow, wide, empty = map(drawings.axis, ([0.3, 3.0], [1e-6, 1e6], []))
    assert [words for _, words in narrow.ticks(4)] == ["1/4×", "1×", "4×"]
    assert 2 <= len(wide.ticks()) <= 6
    assert (empty.low, empty.high) == (-1, 1)


def test_an_interval_is_read_aloud() -> None:
    estimate = SimpleNamespace(value=2.0, low=1.5, high=2.5)
    svg = rendered("{% interval each axis %}", each=estimate, axis=drawings.axis([4.0]))
    assert 'aria-label="2.00×, 95\u00a0%: 1.50 to 2.50"' in svg
    assert 'class="interval faster"' in svg
    for value, low, high, kind in (
        (2.0, 1.8, 2.2, "faster"),
        (0.5, 0.4, 0.6, "slower"),
        (1.1, 0.9, 1.3, "neutral"),
        (1.01, None, None, "neutral"),
        (1.5, None, None, "faster"),
        (0.97, None, None, "slower"),
    ):
        assert drawings.interval(value, low, high, drawings.axis([4.0])).kind == kind
    for tag in ("{% interval each axis %}", "{% interval nobody.speedup axis %}"):
        assert rendered(tag, each=None, axis=drawings.axis([])).strip() == ""


def test_a_bar_is_filled_by_its_parts() -> None:
    parts = drawings.stack({("running", "1 runs"): 1, ("people", "0 wait"): 0, ("behind", "x"): 3})
    told = [(part.kind, part.start, part.percent) for part in parts]
    assert told == [("running", 0.0, 25.0), ("behind", 25.0, 75.0)]
    assert drawings.stack({}) == []
    svg = rendered(
        "{% bar parts label %}", parts=drawings.stack({("done", "<b>"): 1}), label='"<i>'
    )
    assert ("<b>" in svg, "<i>" in svg) == (False, False)
    assert re.search(r'aria-label="&quot;&lt;i&gt;"', svg)
    assert drawings.stack({("done", ""): 1}, whole=4)[0].share == 0.25


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
