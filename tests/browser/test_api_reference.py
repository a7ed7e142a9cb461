"""The API's reference is drawn by scripts of this site alone, under its content policy."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Stack


def test_the_reference_is_read_and_tried_without_another_site(page: Page, seeded: Stack) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.goto(f"{seeded.url}/api/v1/docs")
    listed = page.locator(".opblock").filter(has_text="/api/v1/site")
    listed.click()
    listed.get_by_role("button", name="Try it out").click()
    listed.get_by_role("button", name="Execute").click()
    expect(listed.locator(".live-responses-table")).to_contain_text("kbench-version")
    assert [url for url in asked if not url.startswith((seeded.url, "data:"))] == []
    assert faults == []
