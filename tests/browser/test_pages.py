"""Every page, on a phone and on a desk, in both themes, by keyboard."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser import walking
from tests.browser.accessibility import violations
from tests.browser.conftest import Stack

PAGES = (
    "/", "/tasks/", "/tasks/softmax/", "/tasks/llama_ffw/", "/tasks/softmax/soundness/",
    "/leaderboard/?device=cpu", "/leaderboard/?device=cpu&by=matrix",
    "/leaderboard/?device=cpu&by=submission", "/leaderboard/?device=cpu&by=agent",
    "/leaderboard/?device=cpu&by=model", "/leaderboard/cite/?device=cpu", "/submit/", "/queue/",
    "/runs/", "/runs/new/?task=softmax", "/submit/?task=softmax", "/compare/submissions/",
    "/compare/agents/?device=cpu&agent=kbench-good&agent=islands-v2", "/compare/language-models/",
    "/api/", "/sign-in/", "/sign-up/", "/nowhere/", "/language-models/", "/language-models/1/",
    "/agents/1/", "/docs/", "/docs/results/", "/docs/glossary/", "/search/?q=softmax",
    "/challenges/",
)  # fmt: skip
OF_ADMINS = (
    "/account/", "/account/name/", "/account/password/", "/account/sessions/", "/account/delete/",
    "/notices/", "/notices/settings/", "/operate/", "/operate/people/", "/operate/people/1/",
    "/operate/queues/cpu/empty/", "/operate/runners/1/sensors/", "/curate/history/",
    "/challenges/new/", "/language-models/new/",
)  # fmt: skip
SIDEWAYS = """[...document.querySelectorAll(".table-wrap:has(> .board), .filters")].some(
    (wrap) => wrap.scrollWidth > wrap.clientWidth && !wrap.closest("details:not([open])"))"""


SCREENS = pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])


@pytest.mark.sampled(1)  # narrow and dark is the harder one
@SCREENS
def test_nothing_is_wider_than_the_screen(
    context: BrowserContext, seeded: Stack, width: int, scheme: str
) -> None:
    """And every page has one heading of the first rank, logs no error, and is open to all."""
    page = context.new_page()
    assert _faults(page, seeded, PAGES, width, scheme) == []
    page.goto(f"{seeded.url}/")
    page.locator("main a[href^='/submissions/']").first.click()
    page.wait_for_url("**/submissions/**")
    assert page.locator("h1").count() == 1
    assert page.evaluate(walking.WIDTH) <= width


@pytest.mark.sampled(1)
@SCREENS
def test_nor_are_pages_of_admins(page: Page, seeded: Stack, width: int, scheme: str) -> None:
    walking.sign_in_as_admin(page, seeded, f"admin-{scheme}")
    assert _faults(page, seeded, OF_ADMINS, width, scheme) == []


def _faults(
    page: Page, seeded: Stack, paths: Sequence[str], width: int, scheme: str
) -> list[object]:
    """What is wrong with pages, all of it, so that one run tells all."""
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    faults: list[object] = []
    for path in paths if width == 390 else paths[::3]:
        answer = page.goto(seeded.url + path)
        assert answer is not None
        widest, headings = page.evaluate(walking.WIDTH), page.locator("h1").count()
        faults += [(path, answer.status)] * (answer.ok == (path == "/nowhere/"))
        faults += [(path, "width", widest)] * (widest > width)
        faults += [(path, "headings", headings)] * (headings != 1)
        faults += [(path, "board or filters")] * (width == 390 and page.evaluate(SIDEWAYS))
        faults += [(path, fault) for fault in violations(page)]
    return faults


def test_every_link_of_the_navigation_is_in_sight(page: Page, seeded: Stack) -> None:
    """Of visitors, and of admins, who have more of them."""
    page.goto(f"{seeded.url}/tasks/")
    visitors = _links_in_sight(page)
    walking.sign_in_as_admin(page, seeded, "navigator")
    assert _links_in_sight(page) > visitors


def _links_in_sight(page: Page) -> int:
    """How many links the navigation has, none of which a narrow screen cuts off."""
    links = page.get_by_role("navigation", name="Main").get_by_role("link").all()
    for width in (320, 390, 700, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        for link in links:
            box = link.bounding_box()
            assert box is not None
            assert box["x"] >= 0, (width, link.inner_text())
            assert box["x"] + box["width"] <= width, (width, link.inner_text())
    return len(links)


def test_filters_live_in_the_address(page: Page, seeded: Stack) -> None:
    """A choice changes the address, the address restores the choice."""
    page.goto(f"{seeded.url}/leaderboard/?device=cpu")
    page.get_by_label("Task").select_option("softmax")
    page.wait_for_url("**task=softmax**")
    expect(page.get_by_label("Task")).to_have_value("softmax")
    page.reload()
    expect(page.get_by_label("Task")).to_have_value("softmax")
    page.go_back()
    expect(page.get_by_label("Task")).to_have_value("")

    page.goto(f"{seeded.url}/tasks/")
    page.get_by_label("Name or text").fill("rms")
    page.wait_for_url("**q=rms**")
    expect(page.locator("#tasks caption")).to_contain_text("of")


def test_the_theme_is_kept(page: Page, seeded: Stack) -> None:
    """System, light, dark; the choice holds after a reload, before the first paint."""
    page.goto(seeded.url)
    switch = page.get_by_role("button", name="Colors")
    switch.click()
    switch.click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    expect(page.get_by_role("button", name="Colors: dark")).to_be_visible()


def test_keyboard(page: Page, seeded: Stack) -> None:
    """The first Tab offers to skip the navigation; the editor lets go, and reads Python."""
    page.goto(f"{seeded.url}/tasks/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.goto(f"{seeded.url}/submit/")
    source = page.get_by_label("Source")
    expect(page.locator("#submit-form")).to_have_attribute("data-editor", "yes")
    source.focus()
    page.keyboard.press("Tab")
    assert source.inner_text().startswith("    ")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(source).not_to_be_focused()
    page.get_by_label("Language", exact=True).select_option("python")
    source.fill("def kernel(x):")
    coloured = page.locator(".cm-line span", has_text="def")  # other words are no span
    expect(coloured).to_be_visible()


def test_the_palette_jumps_and_shortcuts_are_listed(page: Page, seeded: Stack) -> None:
    """By keyboard alone; keys alone can be turned off."""
    page.goto(f"{seeded.url}/tasks/")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search")
    expect(palette.get_by_role("option").first).to_be_visible()
    page.keyboard.type("islands-v2")
    expect(palette.get_by_role("option", name="islands-v2")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="islands-v2")).to_be_visible()
    page.wait_for_load_state()  # scripts listen to keys only then

    page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Shortcuts")
    expect(shortcuts).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(shortcuts).to_be_hidden()  # keys belong to it until it has closed
    page.keyboard.type("gd")
    page.wait_for_url("**/docs/")
    page.keyboard.press("Control+k")
    expect(palette.get_by_role("option", name="Home")).to_be_visible()
    page.keyboard.type("islands-v2")
    page.keyboard.press("Enter")  # before the list answers
    expect(page.get_by_role("heading", name="islands-v2")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("?")
    page.get_by_label("Enable single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(shortcuts).to_be_hidden()


def test_a_word_explains_itself_by_keyboard(page: Page, seeded: Stack) -> None:
    """And closes on Escape; no script is needed."""
    page.goto(f"{seeded.url}/language-models/")
    page.get_by_role("button", name="Valid").press("Enter")
    meaning = page.locator(".term-meaning:popover-open")
    expect(meaning).to_contain_text("correct on hardware")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(meaning).to_be_hidden()


def test_a_challenge_is_previewed_before_it_is_published(page: Page, seeded: Stack) -> None:
    walking.sign_in_as_admin(page, seeded, "maker")
    page.goto(f"{seeded.url}/challenges/new/")
    page.get_by_label("Name").fill("Winter")
    page.get_by_label("Search tasks").fill("rms norm")
    page.get_by_label("Tag").select_option("reduction")
    page.get_by_role("button", name="Select all shown").click()
    expect(page.get_by_text("3 selected, 3 of")).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("link", name="rms_norm_bf16")).to_be_visible()
    page.get_by_role("button", name="Publish the challenge").click()
    page.wait_for_url("**/challenges/winter/")
    assert violations(page) == []
