"""What a page costs to load: bytes on the wire, with an empty cache.

KBENCH_TEST_WEIGHTS=FILE writes the figures as a table of Markdown.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.conftest import Stack

pytestmark = pytest.mark.timeout(300)

MOST_PAGE = 150_000
MOST_CHARTS = 350_000
LIBRARY = "plotly-basic"
CURVES = "/leaderboard/?device=cpu&by=agent"
PAGES = (
    "/", "/tasks/", "/tasks/softmax/", "/leaderboard/?device=cpu", CURVES, "/submit/", "/queue/",
    "/runs/", "/verifiers/", "/language-models/", "/api/", "/sign-in/",
)  # fmt: skip
OUTPUT = os.environ.get("KBENCH_TEST_WEIGHTS", "")


def weight(requests: list[Request]) -> int:
    """Bytes of bodies as they were sent, library of charts left out."""
    sizes = [each.sizes() for each in requests if LIBRARY not in each.url]
    return sum(each["responseBodySize"] for each in sizes)


def test_pages_are_light(browser: Browser, seeded: Stack) -> None:
    """Document, styles and scripts together, on the site with invented results."""
    rows = []
    for path in PAGES:
        context = browser.new_context()
        page = context.new_page()
        done: list[Request] = []
        page.on("requestfinished", lambda request, done=done: done.append(request))
        page.goto(seeded.url + path, wait_until="networkidle")
        rows.append((path, weight(done[:1]), weight(done), len(done)))
        context.close()
    if OUTPUT:
        lines = [f"| `{path}` | {own:,} | {all_:,} | {n} |" for path, own, all_, n in rows]
        Path(OUTPUT).write_text("\n".join(lines) + "\n")
    assert [row for row in rows if not 0 < row[1] < row[2] <= MOST_PAGE] == []


def test_the_library_comes_when_a_chart_is_seen(page: Page, seeded: Stack) -> None:
    """Once, small, and to be kept for good; the chart is drawn under the content policy."""
    page.set_viewport_size({"width": 1280, "height": 300})
    fetched: list[Request] = []
    page.on("requestfinished", lambda request: LIBRARY in request.url and fetched.append(request))
    page.goto(seeded.url + CURVES, wait_until="networkidle")
    assert fetched == []
    chart = page.locator("[data-figure=fast-p]")
    chart.scroll_into_view_if_needed()
    expect(chart.locator(".main-svg").first).to_be_visible()
    expect(chart.locator(".legend")).to_be_visible()
    [request] = fetched
    answer = request.response()
    assert answer is not None
    assert answer.header_value("Content-Encoding") == "br"
    assert answer.header_value("Cache-Control") == "max-age=315360000, public, immutable"
    assert 0 < request.sizes()["responseBodySize"] <= MOST_CHARTS


def test_the_chart_follows_theme_and_filters(page: Page, seeded: Stack) -> None:
    """It is drawn again in other colours, and a chart that a filter brings is drawn too."""
    page.goto(seeded.url + CURVES)
    chart = page.locator("[data-figure=fast-p]")
    chart.scroll_into_view_if_needed()
    title = chart.locator(".xtitle")
    expect(title).to_be_visible()
    before = title.evaluate("node => getComputedStyle(node).fill")
    page.emulate_media(color_scheme="dark")
    expect(title).not_to_have_css("fill", before)
    page.goto(f"{seeded.url}/leaderboard/?device=cpu")
    page.get_by_role("link", name="Agents").click()
    chart.scroll_into_view_if_needed()
    expect(chart.locator(".legend")).to_be_visible()
