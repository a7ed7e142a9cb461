"""Comparisons, verifiers and language models in a real browser."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Stack
from tests.browser.walking import WIDTH

SHOTS = os.environ.get("KBENCH_TEST_SHOTS", "")


@pytest.fixture(scope="module")
def pages(compared: list[str]) -> list[str]:
    """Addresses of pages about invented runs, a tuning and a language model."""
    return [*compared, "/runs/ablation/", "/verifiers/", "/language-models/"]


@pytest.mark.sampled(1)  # narrow and dark is the harder one
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_nothing_is_wider_than_the_screen(
    context: BrowserContext, seeded: Stack, pages: list[str], width: int, scheme: str
) -> None:
    """And every page has one heading of the first rank, draws its chart, and logs no error."""
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for path in pages:
        page.goto(seeded.url + path)
        for chart in page.locator("[data-figure]").all():
            chart.scroll_into_view_if_needed()  # it is drawn when it is seen
            expect(chart.locator(".legend")).to_be_visible()
        assert page.evaluate(WIDTH) <= width, path
        assert page.locator("h1").count() == 1, path
        if SHOTS:
            name = path.strip("/").split("?")[0].replace("/", "-")[:24]
            page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png", full_page=True)


def test_the_choice_lives_in_the_address(page: Page, seeded: Stack, pages: list[str]) -> None:
    """Axes, pinned run and differences are links; the address restores them."""
    page.goto(seeded.url + pages[0])
    page.get_by_role("link", name="Cost (USD)").click()
    page.wait_for_url("**x=usd**")
    expect(page.get_by_role("link", name="Cost (USD)")).to_have_attribute("aria-current", "true")
    page.get_by_role("link", name="pin evolve 0").click()
    page.wait_for_url("**pin=**")
    assert "x=usd" in page.url
    expect(page.get_by_role("columnheader", name="evolve 0").first).to_contain_text("pinned")
    settings = page.get_by_role("region", name="Settings by run")
    expect(settings.get_by_role("rowheader", name="profile")).to_be_visible()
    expect(settings.get_by_role("rowheader", name="answer limit (tokens)")).to_have_count(0)
    page.get_by_role("link", name="Show all settings").click()
    expect(settings.get_by_role("rowheader", name="answer limit (tokens)")).to_be_visible()
    page.get_by_role("link", name="remove islands 0").click()
    expect(page.get_by_role("columnheader", name="islands 0")).to_have_count(0)
    assert "x=usd" in page.url


def test_factors_regroup_the_runs(page: Page, seeded: Stack, pages: list[str]) -> None:
    """Fewer factors put unlike runs together, and the table says what it mixes."""
    assert pages
    page.goto(f"{seeded.url}/runs/ablation/")
    rows = page.get_by_role("region", name="Groups of runs").locator("tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_text("More factors").click()
    page.get_by_label("profile", exact=True).check()
    page.wait_for_url("**factor=profile**")
    page.get_by_label("strategy", exact=True).uncheck()
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="mixes strategy")).to_have_count(1)
    assert "factor=strategy" not in page.url
