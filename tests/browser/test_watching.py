"""A visitor submits kernels and watches; the runner does what the test says."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from gpu_runner.data.verdict import Stage, Verdict
from tests.browser.conftest import Stack
from tests.browser.fake_runner import FakeRunner
from tests.browser.walking import GOOD, WRONG, sign_up, submit

pytestmark = pytest.mark.timeout(300)

MARK = "window.stillTheSamePage = true"
MARKED = "() => window.stillTheSamePage === true"


def stage(page: Page, name: Stage) -> str:
    """State of a stage on the page now."""
    return page.locator(f"[data-stage={name}]").get_attribute("data-state") or ""


def test_stages_and_verdicts_come_without_a_reload(
    page: Page, stack: Stack, runner: FakeRunner
) -> None:
    """Good and wrong kernel, side by side with what the runner reports."""
    sign_up(page, stack.url, "watcher")
    good = submit(page, stack.url, GOOD)
    page.evaluate(MARK)
    expect(page.locator("#live .live")).to_have_text("live")
    expect(page.locator("#waiting")).to_contain_text("in the queue")

    runner.take()
    expect(page.locator("#live")).to_have_attribute("data-status", "RUNNING")
    runner.stage(Stage.BUILD)
    expect(page.locator("[data-stage=build]")).to_have_attribute("data-state", "running")
    runner.stage(Stage.BUILD, "done")
    runner.stage(Stage.MEASURE, "running", "process 1 of 3")
    expect(page.locator("[data-stage=build]")).to_have_attribute("data-state", "done")
    expect(page.locator("[data-stage=measure]")).to_contain_text("process 1 of 3")
    runner.finish(Verdict.CORRECT)
    expect(page.locator("#outcome")).to_contain_text("Correct")
    expect(page.get_by_role("region", name="Times by workload")).to_be_visible()
    assert page.evaluate(MARKED), "the page was loaded again"

    wrong = submit(page, stack.url, WRONG)
    runner.take()
    runner.finish(Verdict.WRONG_RESULT)
    expect(page.get_by_role("heading", name="First wrong element")).to_be_visible()

    page.goto(f"{stack.url}/leaderboard/?device=cpu&task=vector_add")
    board = page.get_by_role("region", name="Board by submission")
    paths = [re.sub(r"^.*(/submissions/[^/?]+/).*$", r"\1", url) for url in (good, wrong)]
    expect(board.locator(f"a[href*='{paths[0]}']")).to_have_count(1)
    expect(page.locator(f"a[href*='{paths[1]}']")).to_have_count(0)


def test_without_a_socket_the_page_asks(page: Page, stack: Stack, runner: FakeRunner) -> None:
    """A network that drops WebSockets costs seconds, not the result."""
    sign_up(page, stack.url, "polling")
    page.route_web_socket(re.compile(r"/ws/"), lambda socket: socket.close())
    submit(page, stack.url, GOOD)
    expect(page.locator("#live .live")).to_contain_text("asking")
    runner.take()
    runner.finish(Verdict.CORRECT)
    expect(page.locator("#outcome")).to_contain_text("Correct")


def test_a_refusal_names_the_field_and_keeps_the_source(page: Page, stack: Stack) -> None:
    """An error costs no typing, neither here nor after closing the tab."""
    sign_up(page, stack.url, "careless")
    page.goto(f"{stack.url}/submit/?task=vector_add")
    page.get_by_label("Source").fill(GOOD)
    page.get_by_label("An agent").check()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert")).to_contain_text("Name the agent")
    expect(page.get_by_label("Source")).to_have_value(GOOD)

    page.goto(f"{stack.url}/submit/?task=vector_add")
    expect(page.get_by_label("Source")).to_have_value(GOOD)
    expect(page.locator("#draft-state")).to_contain_text("restored")

    submit(page, stack.url, GOOD)
    page.goto(f"{stack.url}/submit/?task=vector_add")
    expect(page.locator("#id_task")).to_have_value("vector_add")
    expect(page.get_by_label("Source")).to_have_value("")  # the draft has served
    page.go_back()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#outcome")).to_contain_text("Cancelled")


def test_the_queue_page_and_the_first_page_follow(
    page: Page, stack: Stack, runner: FakeRunner
) -> None:
    """What waits appears, and goes when it is cancelled; a verdict falls on the first page."""
    runner.finish_all()  # also the audits of records
    sign_up(page, stack.url, "queuer")
    watcher = page.context.new_page()
    watcher.goto(f"{stack.url}/queue/")
    expect(watcher.locator("#queue-live")).to_have_text("live")
    submit(page, stack.url, GOOD)
    expect(watcher.get_by_role("region", name="Queue of CPU")).to_contain_text("vector_add")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#outcome")).to_contain_text("Cancelled")
    expect(watcher.locator("#queues")).to_contain_text("Nothing waits here")

    watcher.goto(stack.url)
    expect(watcher.locator("[data-live-sign]")).to_have_text("live")
    before = watcher.locator(".feed li").count()
    submit(page, stack.url, GOOD)
    runner.take()
    expect(watcher.locator(".feed .at-work")).to_contain_text("queuer")
    runner.finish(Verdict.WRONG_RESULT)
    expect(watcher.locator(".feed .fresh")).to_contain_text("Wrong result")
    assert watcher.locator(".feed li").count() > before or before == 8
