"""The workbench as a workplace: nothing leaves the screen, and keys do everything."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, Page, expect

from gpu_runner.data.verdict import Stage, Verdict
from tests.browser.accessibility import violations
from tests.browser.conftest import Stack
from tests.browser.fake_runner import FakeRunner
from tests.browser.walking import GOOD, WRONG, choose, sign_up, write

WIDE = {"width": 1280, "height": 800}
MOST_TABS = 5
SCROLLED = "[scrollX, scrollY, document.documentElement.scrollHeight - innerHeight]"
HEIGHT = "document.querySelector('.stages').getBoundingClientRect().height"
"""Asked of the page at once: a locator's box is of an element that a swap may have replaced."""
PLACES = {
    "mode": "[name=mode]",
    "submit": "#submit-button",
    "attempts": "#attempts summary",
    "task": "#task-search",
}
REACHED = (
    "places => Object.keys(places).filter(name => document.activeElement.matches(places[name]))"
)


def opened(page: Page, stack: Stack, name: str) -> None:
    """Sign up and write a right kernel on a wide screen."""
    page.set_viewport_size(WIDE)
    sign_up(page, stack.url, name)
    write(page, stack.url, GOOD)


def reached(page: Page, key: str) -> set[str]:
    """What pressing a key at most five times from the editor comes by."""
    page.get_by_label("Source").focus()
    page.keyboard.press("Escape")
    found: set[str] = set()
    for _ in range(MOST_TABS):
        page.keyboard.press(key)
        found |= set(page.evaluate(REACHED, PLACES))
    return found


def test_a_kernel_is_made_right_and_ranked_without_leaving_the_editor(
    page: Page, stack: Stack, runner: FakeRunner
) -> None:
    """Quick by keys, then ranked by keys: one submission, measured twice."""
    runner.finish_all()
    opened(page, stack, "focused")
    source = page.get_by_label("Source")
    source.press("Control+Enter")
    expect(page.locator("#outcome")).to_contain_text("quick")
    runner.take()
    runner.stage(Stage.BUILD, "done")
    runner.stage(Stage.MEASURE, "running", "process 1 of 1")
    expect(page.locator("[data-stage=measure]")).to_have_attribute("data-state", "running")
    live = page.evaluate(HEIGHT)
    runner.finish(Verdict.CORRECT)
    expect(page.get_by_role("button", name="Rank attempt")).to_be_visible()
    assert page.evaluate(HEIGHT) == live > 0
    expect(source).to_be_focused()
    assert page.evaluate(SCROLLED) == [0, 0, 0]
    assert violations(page) == []

    source.press("Control+Shift+Enter")
    expect(page.locator("#outcome")).to_contain_text("ranked")
    runner.take()
    runner.finish(Verdict.CORRECT)
    expect(page.locator("#outcome")).to_contain_text("Correct")
    expect(page.get_by_role("button", name="Rank attempt")).to_have_count(0)
    expect(page.locator(".attempts > li")).to_have_count(1)


def test_keys_send_what_the_editor_shows_and_nothing_of_an_empty_one(
    page: Page, stack: Stack, runner: FakeRunner
) -> None:
    """Whatever was submitted before: an emptied editor is refused, another text is new."""
    runner.finish_all()
    opened(page, stack, "emptied")
    source, state = page.get_by_label("Source"), page.locator("#draft-state")
    source.press("Control+Enter")
    expect(state).to_contain_text("The site has this version")
    runner.take()
    runner.finish(Verdict.CORRECT)
    expect(page.get_by_role("button", name="Rank attempt")).to_be_visible()
    for keys in ("Control+Enter", "Control+Shift+Enter", "Control+Alt+Enter"):
        source.fill("")
        expect(state).to_be_empty()
        with page.expect_response(f"{stack.url}/submit/") as refused:
            source.press(keys)
        assert refused.value.status == 422
        expect(page.locator(".htmx-request")).to_have_count(0)  # what is under way is sent once
        expect(page.get_by_role("alert")).to_contain_text("Not submitted")
        expect(state).to_be_empty()
        expect(page.locator(".attempts > li")).to_have_count(1)

    source.fill(f"{GOOD}// another\n")
    source.press("Control+Shift+Enter")
    expect(page.locator("#outcome")).to_contain_text("ranked")
    expect(page.locator(".attempts > li")).to_have_count(2)
    runner.take()
    runner.finish(Verdict.CORRECT)


def test_task_editor_and_verdict_stand_side_by_side_and_are_resized(
    page: Page, stack: Stack
) -> None:
    opened(page, stack, "wide-awake")
    expect(page.get_by_label("Source")).to_be_visible()
    panes = [page.locator(name) for name in ("#task-pane", ".bench-main", "#verdict-pane")]
    boxes = [pane.bounding_box() for pane in panes]
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes if box]
    assert len(ends) == len(panes)
    assert ends[0][1] <= ends[1][0] < ends[1][1] <= ends[2][0] < ends[2][1] <= WIDE["width"]

    splitter = page.get_by_role("separator", name="Task width")
    before = ends[0][1]
    splitter.press("ArrowRight")
    page.reload()
    box = page.locator("#task-pane").bounding_box()
    assert box is not None
    assert box["width"] > before - ends[0][0]
    splitter.press("Enter")
    assert page.locator("#bench").get_attribute("style") == ""


def test_everything_is_within_five_tabs(page: Page, stack: Stack, runner: FakeRunner) -> None:
    runner.finish_all()
    opened(page, stack, "quick-fingers")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".attempts > li")).to_have_count(1)
    assert reached(page, "Tab") >= {"mode", "submit", "attempts"}
    assert reached(page, "Shift+Tab") >= {"task"}
    runner.take()
    runner.finish(Verdict.CORRECT)


def test_an_attempt_shows_its_difference_and_comes_back(
    page: Page, stack: Stack, runner: FakeRunner
) -> None:
    runner.finish_all()
    opened(page, stack, "undone")
    source = page.get_by_label("Source")
    for text, verdict in ((WRONG, Verdict.WRONG_RESULT), (GOOD, Verdict.CORRECT)):
        source.fill(text)
        source.press("Control+Enter")
        runner.take()
        runner.finish(verdict)
        words = "Wrong result" if verdict is Verdict.WRONG_RESULT else "Correct"
        expect(page.locator("#outcome")).to_contain_text(words)
    rows = page.locator(".attempts > li")
    expect(rows).to_have_count(2)
    rows.first.locator("summary").click()
    difference = rows.first.locator(".diff .remove").first
    expect(difference).to_contain_text("A[i] - B[i]")
    with page.expect_response(lambda answer: "/attempts/" in answer.url):
        page.evaluate("htmx.trigger(document, 'kbench:verdict')")
    page.wait_for_function("!document.querySelector('#attempts.htmx-request')")
    expect(difference).to_contain_text("A[i] - B[i]")

    page.get_by_role("link", name="Restore attempt 1").click()
    expect(source).to_contain_text("A[i] - B[i]")
    expect(page.locator("#outcome")).to_contain_text("Wrong result")
    expect(rows.last).to_have_attribute("aria-current", "true")
    expect(source).to_be_focused()


def test_a_task_is_found_by_words_and_by_its_name(page: Page, seeded: Stack) -> None:
    page.set_viewport_size(WIDE)
    page.goto(f"{seeded.url}/submit/")
    picker = page.get_by_role("combobox", name="Task")
    picker.fill("2d max pool")
    assert violations(page) == []
    picker.press("ArrowDown")
    picker.press("ArrowUp")
    picker.press("Enter")
    expect(picker).to_have_value("Max pooling, 2D")
    expect(page.get_by_role("heading", name="Max pooling, 2D")).to_be_visible()
    picker.fill("no such thing")
    expect(page.get_by_text("No task matches")).to_be_visible()
    picker.press("Escape")
    expect(picker).to_have_value("Max pooling, 2D")
    choose(page, "rms_norm")
    page.wait_for_url("**task=rms_norm")


@pytest.mark.parametrize("width", [390, 820])
def test_a_narrow_screen_shows_one_at_a_time(page: Page, seeded: Stack, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{seeded.url}/submit/?task=softmax")
    page.locator("#submit-form[data-editor=yes]").wait_for()
    panes = {"Task": "#brief", "Editor": ".cm-content", "Verdict": "#console"}
    for tab in panes:
        page.locator(".bench-tabs").get_by_text(tab).click()
        for name, place in panes.items():
            expect(page.locator(place)).to_be_visible(visible=name == tab)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []


def test_an_unsent_draft_is_there_on_return(page: Page, seeded: Stack) -> None:
    """In its language, and without a task in the address, too; not in place of what was asked."""
    page.set_viewport_size(WIDE)
    page.goto(f"{seeded.url}/submit/?task=vector_add")
    page.get_by_label("Language", exact=True).select_option("python")
    source, state = page.locator("#id_source"), page.locator("#draft-state")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("# begun")
    expect(state).to_contain_text("Kept in this browser")
    for address in ("?task=vector_add", ""):
        page.goto(f"{seeded.url}/tasks/")
        page.goto(f"{seeded.url}/submit/{address}")
        expect(state).to_contain_text("Restored your unsent draft")
        expect(source).to_have_value("# begun")
        expect(page.get_by_label("Language", exact=True)).to_have_value("python")
        expect(page.locator("#task-search")).not_to_have_value("")
    page.goto(f"{seeded.url}/submit/?task=vector_add&kernel=starter")
    expect(source).not_to_have_value("# begun")
    page.goto(f"{seeded.url}/submit/?task=vector_add")
    page.get_by_role("button", name="Discard it").click()
    expect(source).not_to_have_value("# begun")
    page.goto(f"{seeded.url}/submit/?task=vector_add")
    expect(state).to_be_empty()


def test_a_draft_keeps_the_files_beside_it(page: Page, seeded: Stack) -> None:
    """Also one that was put aside; not those that were removed, or that the site would refuse."""
    page.set_viewport_size(WIDE)
    page.goto(f"{seeded.url}/submit/?task=vector_add")
    others, state = page.locator("#other-files"), page.locator("#draft-state")
    named, beside = others.locator("label.check"), page.locator("[name=beside]")
    others.locator("summary").click()
    more = page.locator("#id_more")
    more.set_input_files([sent("sum.h", b"int sum;"), sent("b.h", b"int b;")])
    expect(named).to_have_text(["b.h", "sum.h"])
    more.set_input_files([sent("sum.h", b"int same;")])
    expect(beside).to_have_value('{"sum.h":"int same;","b.h":"int b;"}')
    more.set_input_files([sent("c.h", b"\xff")])
    named.filter(has_text="b.h").locator("input").check()
    expect(state).to_contain_text("Kept in this browser")
    page.goto(f"{seeded.url}/tasks/")
    page.goto(f"{seeded.url}/submit/?task=vector_add")
    expect(others.locator("summary")).to_have_text("Add files (1 here)")
    expect(beside).to_have_value('{"sum.h":"int same;"}')
    page.get_by_role("button", name="Discard it").click()
    expect(beside).to_have_value("{}")
    expect(others.locator("fieldset")).to_be_hidden()
    page.locator("#kept > summary").click()
    page.locator("#kept-texts button").click()
    expect(beside).to_have_value('{"sum.h":"int same;"}')


def sent(name: str, content: bytes) -> FilePayload:
    """A file as somebody chooses it."""
    return {"name": name, "mimeType": "text/plain", "buffer": content}
