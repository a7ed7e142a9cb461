"""A visitor submits kernels and watches; the runner does what the test says."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from gpu_runner.data.integrity import Audit, AuditCheck, AuditState, Check, Suspicion
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode, Stage, Verdict
from tests.browser.conftest import Stack
from tests.browser.fake_runner import FakeRunner
from tests.browser.walking import (
    GOOD,
    MARK,
    MARKED,
    WRONG,
    fits,
    sign_in_as_admin,
    sign_up,
    submit,
    write,
)


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
    expect(page.get_by_role("region", name="By workload")).to_be_visible()
    assert page.evaluate(MARKED), "the page was loaded again"
    assert page.title().startswith("✓Correct · ")

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
    """A network that drops WebSockets costs seconds, not the result, its citation or its badge."""
    sign_up(page, stack.url, "polling")
    page.route_web_socket(re.compile(r"/ws/"), lambda socket: socket.close())
    submit(page, stack.url, GOOD)
    shared = page.locator("#around details", has_text="Cite and share")
    shared.locator("summary").click()
    expect(page.locator("#bibtex")).to_contain_text("queued on")
    expect(page.locator("#live .live")).to_contain_text("updating")
    runner.take()
    runner.finish(Verdict.CORRECT)
    expect(page.locator("#outcome")).to_contain_text("Correct")
    for cited in (page.locator("#bibtex"), page.locator("#badge-markdown")):
        expect(cited).to_contain_text("×")
    expect(shared.locator("img[src$='badge.svg']")).to_have_attribute("alt", re.compile("×"))
    expect(shared).to_have_attribute("open", "")


def test_the_workbench_is_never_left(page: Page, stack: Stack, runner: FakeRunner) -> None:
    """Written, refused, submitted by keys, watched, marked at its line, and mended there."""
    runner.finish_all()
    sign_up(page, stack.url, "careless")
    write(page, stack.url, WRONG)
    page.evaluate(MARK)
    page.locator(".authorship > summary", has_text="Author and visibility").click()
    page.get_by_label("An agent").check()
    source = page.get_by_label("Source")
    source.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("Enter the agent's name")
    expect(source).to_contain_text("A[i] - B[i]")
    page.get_by_label("A person").check()
    page.get_by_label("A person").press("Control+Enter")  # wherever the focus is
    expect(page.locator("#console #live .live")).to_have_text("live")
    expect(page.get_by_role("alert")).to_have_count(0)
    runner.take()
    runner.finish(Verdict.COMPILE_ERROR)
    expect(page.locator("#outcome")).to_contain_text("Compile error")
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()
    page.get_by_role("link", name="line 3").click()
    expect(source).to_be_focused()
    _mend(page, runner)
    assert page.evaluate(MARKED), "the page was loaded again"


def _mend(page: Page, runner: FakeRunner) -> None:
    """Begin again from a kernel of the task, and see the other verdict in the same place."""
    source = page.get_by_label("Source")
    page.get_by_role("link", name="kbench-good's kernel").click()
    expect(source).to_contain_text("vector_add")
    expect(page.locator("#draft-state")).to_contain_text("Started from kbench-good's kernel")
    source.press("Control+Home")
    page.keyboard.type("// mine ")
    source.press("Control+Enter")
    runner.take()
    runner.finish(Verdict.CORRECT)
    expect(page.locator("#outcome")).to_contain_text("Correct")
    expect(page.locator(".hero")).to_contain_text("×")
    expect(page.locator(".cm-lint-marker-error")).to_have_count(0)


def test_keys_pressed_thrice_submit_once_and_the_count_follows(
    page: Page, stack: Stack, runner: FakeRunner
) -> None:
    runner.finish_all()
    sign_up(page, stack.url, "hasty")
    write(page, stack.url, GOOD)
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(asked.url) if asked.method == "POST" else None)
    for _ in range(3):
        page.keyboard.press("Control+Enter")
    expect(page.locator("#console #live .live")).to_have_text("live")
    expect(page.locator("#quota-left")).to_contain_text("1 under way")
    page.keyboard.press("Control+Enter")
    assert [address for address in sent if "/submit/" in address] == [f"{stack.url}/submit/"]
    runner.take()
    runner.finish(Verdict.CORRECT)
    expect(page.locator("#outcome")).to_contain_text("Correct")
    expect(page.locator("#quota-left")).not_to_contain_text("under way")


def test_what_is_written_is_never_lost(page: Page, stack: Stack) -> None:
    """Neither by closing the tab, nor by beginning from something else, until it is submitted."""
    sign_up(page, stack.url, "forgetful")
    write(page, stack.url, GOOD)
    expect(page.locator("#draft-state")).to_contain_text("Kept in this browser")
    opened = f"{stack.url}/submit/?task=vector_add"
    page.goto(opened)
    source = page.get_by_label("Source")
    expect(source).to_contain_text("vector_add")
    expect(page.locator("#draft-state")).to_contain_text("Restored your unsent draft")

    page.goto(f"{opened}&kernel=starter")
    expect(source).to_contain_text("your kernel")
    page.locator("#kept > summary").click()
    page.locator("#kept-texts").get_by_role("button").first.click()
    expect(source).not_to_contain_text("your kernel")
    page.get_by_role("link", name="the starter", exact=True).click()
    expect(page.locator("#draft-state")).to_contain_text("under “Earlier drafts” below; Ctrl+Z")
    expect(page.locator("#kept-texts").get_by_role("button").first).to_be_visible()
    source.press("Control+z")
    expect(source).not_to_contain_text("your kernel")

    page.get_by_role("button", name="Submit").click()
    expect(page.locator("#draft-state")).to_contain_text("The site has this version")
    page.goto(opened)
    expect(source).to_contain_text("your kernel")  # the starter again: the draft has served
    page.go_back()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#outcome")).to_contain_text("Canceled")


def test_without_scripts_a_plain_form_does(browser: Browser, stack: Stack) -> None:
    """A textarea, and a page of its own for what was submitted."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_up(page, stack.url, "scriptless")
    page.goto(f"{stack.url}/submit/?task=vector_add")
    page.get_by_label("Source").fill(GOOD)
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/submissions/**")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#outcome")).to_contain_text("Canceled")
    context.close()


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
    expect(page.locator("#outcome")).to_contain_text("Canceled")
    expect(watcher.locator("#queues")).to_contain_text("Nothing is waiting")

    watcher.goto(stack.url)
    expect(watcher.locator("[data-live-sign]")).to_have_text("live")
    before = watcher.locator(".feed li").count()
    submit(page, stack.url, GOOD)
    runner.take()
    expect(watcher.locator(".feed .at-work")).to_contain_text("queuer")
    runner.finish(Verdict.WRONG_RESULT)
    expect(watcher.locator(".feed .fresh")).to_contain_text("Wrong result")
    assert watcher.locator(".feed li").count() > before or before == 8


def test_a_board_counts_new_results_and_shows_them_when_pressed(
    page: Page, stack: Stack, runner: FakeRunner
) -> None:
    """A board isn't changed under its reader; one of another task counts nothing."""
    runner.finish_all()
    sign_up(page, stack.url, "climber")
    boards = [page.context.new_page() for _ in range(3)]
    paths = ("/leaderboard/?device=cpu&by=leaders", "/tasks/vector_add/", "/tasks/softmax/")
    for board, path in zip(boards, paths, strict=True):
        with board.expect_websocket():
            board.goto(stack.url + path)
    submit(page, stack.url, f"{GOOD}// a third\n")
    runner.take()
    runner.finish(Verdict.CORRECT, level=9.0)
    for board in boards[:2]:
        expect(board.get_by_role("button", name="1 new result")).to_be_visible()
        expect(board.locator("#board")).not_to_contain_text("climber")
        board.get_by_role("button", name="1 new result").click()
        expect(board.locator("#board table")).to_contain_text("climber")
        expect(board.locator("[data-new]")).to_be_hidden()
    expect(boards[2].locator("[data-new]")).to_be_hidden()


SUSPICION = Suspicion(check=Check.SOURCE, reason="a line that a kernel does not need", line=2)
CHECKS = (
    AuditCheck(name="memcheck", state=AuditState.PASSED, reason="no errors", report="0 errors"),
    AuditCheck(
        name="racecheck", state=AuditState.FAILED, reason="2 hazards", report="hazard " * 99
    ),
)


def clear_it(browser: Browser, stack: Stack) -> None:
    """Decide the only case as an admin does."""
    context = browser.new_context()
    desk = context.new_page()
    sign_in_as_admin(desk, stack, "judge")
    desk.goto(f"{stack.url}/quarantine/")
    expect(desk.get_by_role("link", name="Quarantine, 1 open")).to_be_visible()
    fits(desk)
    desk.get_by_label("Reason", exact=True).fill("The line is harmless.")
    desk.get_by_role("button", name="Clear: it counts").click()
    expect(desk.get_by_text("Nothing to decide")).to_be_visible()
    context.close()


def test_a_suspicious_record_is_decided_audited_and_taken_off(
    page: Page, browser: Browser, stack: Stack, runner: FakeRunner
) -> None:
    """The author's page follows all of it without being loaded again."""
    runner.finish_all()
    sign_up(page, stack.url, "sly")
    address = submit(page, stack.url, f"// sly\n{GOOD}", task="dot_product")
    runner.take()
    runner.finish(Verdict.CORRECT, level=9, suspicions=(SUSPICION,))
    notice = page.get_by_role("region", name="What looks suspicious")
    expect(notice).to_contain_text("a person will review it and decide")
    expect(notice.locator("mark")).to_have_text(GOOD.splitlines()[0])
    fits(page)
    clear_it(browser, stack)
    expect(notice).to_contain_text("Cleared by judge")
    place = page.get_by_role("region", name="Audit", exact=True)
    expect(place).to_contain_text("Until it passes, it's provisional")

    assert runner.take(urgency=Urgency.AUDITS).mode is Mode.AUDIT
    runner.finish(Verdict.CORRECT, audit=Audit(checks=CHECKS))
    expect(place).to_contain_text("Racecheck: 2 hazards")
    place.get_by_role("link", name="The audit").click()
    report = page.get_by_role("region", name="Audit report")
    report.get_by_text("Tool output").last.click()
    expect(report.get_by_text("hazard hazard")).to_be_visible()
    fits(page)
    page.goto(f"{stack.url}/leaderboard/?device=cpu&task=dot_product")
    path = address.removeprefix(stack.url).partition("?")[0]
    expect(page.locator(f"a[href*='{path}']")).to_have_count(0)
