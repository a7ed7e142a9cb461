"""A suspicious record: seen by its author, decided by an admin, audited, and taken off again."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from gpu_runner.data.integrity import Audit, AuditCheck, AuditState, Check, Suspicion
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode, Verdict
from tests.browser.conftest import Stack
from tests.browser.fake_runner import FakeRunner
from tests.browser.walking import GOOD, sign_in_as_admin, sign_up, submit

SUSPICION = Suspicion(check=Check.SOURCE, reason="a line that a kernel does not need", line=2)
CHECKS = (
    AuditCheck(name="memcheck", state=AuditState.PASSED, reason="no errors", report="0 errors"),
    AuditCheck(
        name="racecheck", state=AuditState.FAILED, reason="2 hazards", report="hazard " * 99
    ),
)
WIDTH = "document.documentElement.scrollWidth"


def fits(page: Page) -> None:
    """Nothing is wider than a phone, in either theme."""
    before = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 800})
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate(WIDTH) <= 390, page.url
    page.set_viewport_size(before or {"width": 1280, "height": 800})


def clear_it(browser: Browser, stack: Stack) -> None:
    """Decide the only case as an admin does."""
    context = browser.new_context()
    desk = context.new_page()
    sign_in_as_admin(desk, stack, "judge")
    desk.goto(f"{stack.url}/quarantine/")
    expect(desk.get_by_role("link", name="Quarantine, 1 open")).to_be_visible()
    fits(desk)
    desk.get_by_label("Why").fill("The line is harmless.")
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
    expect(notice).to_contain_text("a person will look at it and decide")
    expect(notice.locator("mark")).to_have_text(GOOD.splitlines()[0])
    fits(page)
    clear_it(browser, stack)
    expect(notice).to_contain_text("Cleared by judge")
    place = page.get_by_role("region", name="Audit", exact=True)
    expect(place).to_contain_text("Until it passes, it is shown as unverified")

    assert runner.take(urgency=Urgency.AUDITS).mode is Mode.AUDIT
    runner.finish(Verdict.CORRECT, audit=Audit(checks=CHECKS))
    expect(place).to_contain_text("Racecheck: 2 hazards")
    place.get_by_role("link", name="The audit").click()
    report = page.get_by_role("region", name="Audit report")
    report.get_by_text("Output of the tool").last.click()
    expect(report.get_by_text("hazard hazard")).to_be_visible()
    fits(page)
    page.goto(f"{stack.url}/leaderboard/?device=cpu&task=dot_product")
    path = address.removeprefix(stack.url).partition("?")[0]
    expect(page.locator(f"a[href*='{path}']")).to_have_count(0)
