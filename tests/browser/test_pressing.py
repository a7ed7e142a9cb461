"""What is pressed while the page brings something fresh keeps its click, and holds nothing up."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Stack
from tests.browser.walking import begin_example, sign_up

WATCH = """isEnded => {
    const later = window.setTimeout;
    const never = new Promise(resolve => later(resolve, 15000, false));
    if (isEnded) window.setTimeout = (end, ms) => ms ? 0 : later(end); // no longest wait
    window.over = Promise.race([kbench.released(document.body).then(() => true), never]);
}"""
PRESSED = "document.querySelector('button:active, a:active') !== null"
HELD = """() => Promise.race([
    kbench.released(document.querySelector("a:active")).then(() => false),
    new Promise(resolve => setTimeout(resolve, 300, true)),
])"""
KEPT = "table => table.isConnected && table.contains(document.activeElement)"


def press(page: Page, stack: Stack, ends_with: str = "") -> None:
    """Press something on a page, and begin to wait for the end of that."""
    page.goto(f"{stack.url}/tasks/")
    if ends_with == "keyup":
        page.locator(".theme-switch").focus()
        page.keyboard.down(" ")
    else:
        page.get_by_role("link", name="Leaderboard").hover()
        page.mouse.down()
    assert page.evaluate(PRESSED)
    page.evaluate(WATCH, bool(ends_with))


@pytest.mark.parametrize("ends_with", ["keyup", "dragend", "pointercancel", "blur"])
def test_a_press_ends_also_without_a_pointer_that_is_lifted(
    page: Page, stack: Stack, ends_with: str
) -> None:
    press(page, stack, ends_with)
    if ends_with == "keyup":
        page.keyboard.up(" ")
    elif ends_with == "dragend":
        page.mouse.move(400, 400, steps=5)
        page.mouse.up()
    else:
        page.evaluate("name => window.dispatchEvent(new Event(name))", ends_with)
    assert page.evaluate("window.over")
    if ends_with in ("keyup", "dragend"):
        assert not page.evaluate(PRESSED)


def test_a_press_that_does_not_end_holds_nothing_up(page: Page, stack: Stack) -> None:
    press(page, stack)
    assert page.evaluate("window.over")


def test_what_is_pressed_itself_is_waited_for(page: Page, stack: Stack) -> None:
    press(page, stack)
    assert page.evaluate(HELD)


def test_a_file_that_is_chosen_while_the_list_of_files_comes_anew_is_opened(
    page: Page, stack: Stack
) -> None:
    sign_up(page, stack.url, "quick-hand")
    begin_example(page, stack.url)
    savings: list[Route] = []
    page.route("**/drafts/*/", lambda route: savings.append(route))  # noqa: PLW0108 - playwright wants a function
    editor = page.locator("#id_text")
    editor.fill(editor.input_value().replace('"large"', '"huge"'))
    with page.expect_request(lambda request: request.method == "POST"):
        editor.press("Control+s")
    files = page.locator("#draft-files")
    page.evaluate("window.files = document.getElementById('draft-files')")
    files.get_by_role("button", name="reference.py").hover()
    page.mouse.down()
    savings.pop().continue_()
    page.unroute("**/drafts/*/")
    expect(page.locator("#draft-status")).to_contain_text("1 problem")
    assert page.evaluate("window.files.isConnected")
    page.mouse.up()
    expect(files.locator("[aria-current]")).to_contain_text("reference.py")


def test_the_list_of_files_comes_anew_once_the_press_is_over(page: Page, stack: Stack) -> None:
    sign_up(page, stack.url, "undecided")
    begin_example(page, stack.url)
    files = page.locator("#draft-files")
    editor = page.locator("#id_text")
    editor.fill(editor.input_value().replace('"large"', '"huge"'))
    files.get_by_role("button", name="reference.py").hover()
    page.mouse.down()
    editor.evaluate("t => { t.focus(); document.getElementById('save').click(); }")
    expect(page.locator("#draft-status")).to_contain_text("1 problem")
    page.mouse.move(0, 0)
    page.mouse.up()
    expect(files.locator(".badge")).to_have_count(1)


def test_the_list_of_runs_stays_while_something_in_it_has_the_focus(
    page: Page, stack: Stack
) -> None:
    answer = page.request.get(f"{stack.url}/runs/").text()
    moving = answer.replace('data-moving="no"', 'data-moving="yes"')
    refreshes: list[Route] = []

    def serve(route: Route) -> None:
        if route.request.resource_type == "document":
            route.fulfill(body=moving, content_type="text/html")
        else:
            refreshes.append(route)

    page.route("**/runs/", serve)
    page.goto(f"{stack.url}/runs/")
    with page.expect_request(lambda request: request.resource_type == "fetch"):
        table = page.locator(".run-table").element_handle()
    page.locator(".run-table a").first.hover()
    page.evaluate("document.addEventListener('click', event => event.preventDefault())")
    page.mouse.down()
    with page.expect_response("**/runs/"):
        refreshes.pop().fulfill(body=moving, content_type="text/html")
    page.wait_for_timeout(100)  # for the answer to be read
    page.mouse.up()
    page.wait_for_timeout(300)  # for the table to be replaced after all
    assert page.evaluate(KEPT, table)
