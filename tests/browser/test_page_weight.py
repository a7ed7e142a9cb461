"""What a page costs to load: bytes on the wire, with an empty cache.

KBENCH_TEST_WEIGHTS=FILE writes the figures as a table of Markdown.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.conftest import Stack

MOST_PAGE = 100_000
MOST_CHARTS = 350_000
LIBRARY = "plotly-basic"
EDITOR = "codemirror"
MOST_EDITOR = 110_000
CURVES = "/leaderboard/?device=cpu&by=agent"
PAGES = (
    "/", "/tasks/", "/tasks/softmax/", "/leaderboard/?device=cpu", CURVES, "/submit/", "/queue/",
    "/runs/", "/verifiers/", "/language-models/", "/api/", "/sign-in/",
)  # fmt: skip
OUTPUT = os.environ.get("KBENCH_TEST_WEIGHTS", "")


@pytest.fixture(scope="module")
def pages(seeded: Stack, browser: Browser, compared: list[str], invented: str) -> dict[str, str]:
    """Path of each page by what it is called; a submission, and a run of many candidates."""
    page = browser.new_page()
    page.goto(seeded.url)
    submission = page.locator("a[href^='/submissions/']").first.get_attribute("href")
    page.close()
    assert submission is not None
    several, tuning, _ = compared
    return {path: path for path in PAGES} | {
        "a submission": submission,
        "a run": invented.removeprefix(seeded.url),
        "a comparison of runs": several,
        "a tuning": tuning,
    }


def weight(requests: list[Request], *kinds: str) -> int:
    """Bytes of bodies as they were sent, of these kinds of resource or of all but the libraries.

    The events of a run are of the kind `fetch`: they are data, and grow with the run.
    """
    counted = [each for each in requests if LIBRARY not in each.url and EDITOR not in each.url]
    if kinds:
        counted = [each for each in counted if each.resource_type in kinds]
    return sum(each.sizes()["responseBodySize"] for each in counted)


def test_pages_are_light(browser: Browser, seeded: Stack, pages: dict[str, str]) -> None:
    """Document, styles and scripts together, on the site with invented results."""
    rows = []
    for name, path in pages.items():
        context = browser.new_context()
        page = context.new_page()
        done: list[Request] = []
        page.on("requestfinished", lambda request, done=done: done.append(request))
        page.goto(seeded.url + path, wait_until="networkidle")
        data = weight(done, "fetch")
        rows.append((name, weight(done, "document"), weight(done) - data, data))
        context.close()
    if OUTPUT:
        lines = [f"| {name} | {own:,} | {all_:,} | {data:,} |" for name, own, all_, data in rows]
        Path(OUTPUT).write_text("\n".join(lines) + "\n")
    assert [row for row in rows if not 0 < row[1] < row[2] <= MOST_PAGE] == []


def assert_small_and_kept(fetched: list[Request], most: int) -> None:
    """One library was fetched: compressed, and to be kept for good."""
    [request] = fetched
    answer = request.response()
    assert answer is not None
    assert answer.header_value("Content-Encoding") == "br"
    assert answer.header_value("Cache-Control") == "max-age=315360000, public, immutable"
    assert 0 < request.sizes()["responseBodySize"] <= most


def test_the_library_comes_when_a_chart_is_seen(page: Page, seeded: Stack) -> None:
    """Once; the chart is drawn under the content policy, with the table of its numbers below."""
    page.set_viewport_size({"width": 1280, "height": 300})
    fetched: list[Request] = []
    page.on("requestfinished", lambda request: LIBRARY in request.url and fetched.append(request))
    page.goto(seeded.url + CURVES, wait_until="networkidle")
    assert fetched == []
    chart = page.locator("[data-figure=fast-p]")
    chart.scroll_into_view_if_needed()
    expect(chart.locator(".main-svg").first).to_be_visible()
    expect(chart.locator(".legend")).to_contain_text("grace")
    expect(page.get_by_role("region", name="fast_p by threshold")).to_be_visible()
    assert_small_and_kept(fetched, MOST_CHARTS)


def test_the_editor_is_one_small_library(page: Page, seeded: Stack) -> None:
    """It comes after the page, which works without it, and is kept for good."""
    fetched: list[Request] = []
    page.on("requestfinished", lambda request: EDITOR in request.url and fetched.append(request))
    page.goto(f"{seeded.url}/submit/", wait_until="networkidle")
    assert_small_and_kept(fetched, MOST_EDITOR)


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
