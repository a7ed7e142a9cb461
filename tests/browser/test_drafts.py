"""A task is proposed, mended in the browser, and published by an admin."""

from __future__ import annotations

import re
import zipfile

from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import Stack
from tests.browser.walking import PASSWORD, begin_example, fits, sign_in, sign_in_as_admin, sign_up

SELECTED = "t => t.value.slice(t.selectionStart, t.selectionEnd)"


def write(page: Page, old: str, new: str) -> None:
    """Replace a part of the text in the editor, and save as the keyboard does."""
    editor = page.locator("#id_text")
    editor.fill(editor.input_value().replace(old, new))
    editor.press("Control+s")


def decide(browser: Browser, stack: Stack, address: str) -> None:
    """Publish as an admin who has seen that nobody checked it."""
    context = browser.new_context()
    desk = context.new_page()
    sign_in_as_admin(desk, stack, "curator")
    desk.goto(f"{stack.url}/drafts/")
    fits(desk)
    desk.get_by_role("link", name="my_sum").click()
    assert desk.url.split("?")[0] == address
    fits(desk)
    desk.get_by_role("button", name="Publish", exact=True).click()
    expect(desk.get_by_role("alert")).to_contain_text("give a reason")
    expect(desk.locator("#draft-step")).to_contain_text("no soundness report")
    fits(desk)
    desk.get_by_label("Why it can be public anyway").fill("A sum; read by hand.")
    desk.get_by_role("button", name="Publish anyway").click()
    expect(desk.locator("#draft-step")).to_contain_text("It became my_sum v1")
    context.close()


def mend(page: Page) -> None:
    """Go to a fault, and write over it."""
    write(page, 'values = "large"', 'values = "huge"')
    expect(page.locator("#draft-status")).to_contain_text("1 problem")
    expect(page.locator(".gutter .wrong")).to_have_count(1)
    page.locator("#id_text").evaluate("t => t.setSelectionRange(0, 0)")
    page.locator(".faults button").click()
    assert page.locator("#id_text").evaluate(SELECTED) == 'values = "huge"'
    page.keyboard.type('values = "large"')  # over what is selected
    page.keyboard.press("Tab")
    assert page.locator("#id_text").evaluate("t => document.activeElement === t")
    fits(page)
    page.keyboard.press("Control+s")
    expect(page.locator("#draft-status")).to_contain_text("no problems found")


def check_unsaved(page: Page) -> None:
    """Ask for a check of a text that is not saved: it is saved before."""
    editor = page.locator("#id_text")
    editor.fill(editor.input_value().replace('abi = "c"', "abi = c"))
    page.get_by_role("button", name="Check it").click()
    expect(page.locator("#draft-status")).to_contain_text("1 problem")
    expect(page.locator("#findings").get_by_role("alert")).to_contain_text("is not valid TOML")
    write(page, "abi = c", 'abi = "c"')
    expect(page.locator("#draft-status")).to_contain_text("no problems found")


def collide(page: Page) -> None:
    """Save over what was saved in another tab meanwhile, after having seen it."""
    other = page.context.new_page()
    other.goto(page.url)
    write(other, "# Listed workloads", "# Theirs")
    expect(other.locator("#draft-status")).to_contain_text("Saved")
    write(page, "# Listed workloads", "# Mine")
    expect(page.locator("#draft-status")).to_contain_text("Not saved")
    expect(page.locator("#draft-status .diff")).to_contain_text("# Theirs")
    assert "# Mine" in page.locator("#id_text").input_value()
    fits(page)
    page.get_by_role("button", name="Overwrite theirs with mine").click()
    expect(page.locator("#draft-status")).to_contain_text("Revision")
    assert "# Mine" in page.locator("#id_text").input_value()


def test_a_draft_is_mended_and_published(page: Page, browser: Browser, stack: Stack) -> None:
    sign_up(page, stack.url, "proposer")
    page.goto(f"{stack.url}/tasks/")
    page.get_by_role("link", name="Propose a task").click()
    fits(page)
    page.get_by_role("button", name="Start from the example").click()
    page.wait_for_load_state()
    write(page, '"scaled_sum"', '"my_sum"')
    expect(page.locator("#draft-status")).to_contain_text("no problems found")
    mend(page)
    check_unsaved(page)
    collide(page)
    page.get_by_role("button", name="Send to review").click()
    expect(page.locator("#draft-step")).to_contain_text("An admin will decide")
    expect(page.locator("#id_text")).not_to_be_editable()
    decide(browser, stack, page.url.split("?")[0])
    page.reload()
    page.get_by_role("link", name="my_sum v1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Scaled sum of two vectors")


def test_a_check_is_not_lost_to_an_older_answer(page: Page, stack: Stack) -> None:
    """What an earlier saving has asked for arrives while the text is saved before a check."""
    sign_up(page, stack.url, "hurried")
    begin_example(page, stack.url)
    findings: list[Route] = []
    savings: list[Route] = []
    page.route("**/trials/", lambda route: findings.append(route))  # noqa: PLW0108 - playwright wants a function
    with page.expect_request("**/trials/"):
        write(page, '"scaled_sum"', '"hurried_sum"')
    page.route(re.compile(r"/drafts/[0-9a-f-]{36}/$"), lambda route: savings.append(route))  # noqa: PLW0108 - as above
    editor = page.locator("#id_text")
    editor.fill(editor.input_value().replace('abi = "c"', "abi = c"))
    with page.expect_request(lambda request: request.method == "POST"):
        page.get_by_role("button", name="Check it").click()
    with page.expect_response("**/trials/"):
        findings.pop().continue_()
    page.unroute("**/trials/")
    with page.expect_response(lambda answer: answer.url.endswith("/check/")):
        savings.pop().continue_()
    expect(page.locator("#findings").get_by_role("alert")).to_contain_text("is not valid TOML")


def test_a_button_that_is_pressed_while_a_fresh_one_comes_gives_its_click(
    page: Page, stack: Stack
) -> None:
    sign_up(page, stack.url, "slow-hand")
    begin_example(page, stack.url)
    findings: list[Route] = []
    page.route("**/trials/", lambda route: findings.append(route))  # noqa: PLW0108 - as above
    with page.expect_request("**/trials/"):
        write(page, '"scaled_sum"', '"slow_sum"')
    page.get_by_role("button", name="Check it").hover()
    page.mouse.down()
    with page.expect_response("**/trials/"):
        findings.pop().continue_()
    page.unroute("**/trials/")
    page.wait_for_timeout(300)  # for the answer to be put in, were it not for the press
    page.route("**/check/", lambda route: route.abort())  # nobody here would make the check
    with page.expect_request("**/check/"):
        page.mouse.up()


def test_what_is_typed_is_sent_and_downloaded_and_a_refused_save_sends_nothing(
    page: Page, stack: Stack
) -> None:
    sign_up(page, stack.url, "sender")
    begin_example(page, stack.url)
    editor, send = page.locator("#id_text"), page.get_by_role("button", name="Send to review")
    sound = editor.input_value().replace('"scaled_sum"', '"sent_sum"')
    editor.fill(f"{sound}# downloaded\n")
    with page.expect_download() as begun:
        page.get_by_role("link", name="Download as zip").click()
    with zipfile.ZipFile(begun.value.path()) as archive:
        [kept] = [name for name in archive.namelist() if name.endswith("task.toml")]
        assert archive.read(kept).decode().endswith("# downloaded\n")
    editor.evaluate("(t, text) => { t.value = text; }", f"{sound}\0")
    send.click()
    expect(page.locator("#draft-status")).to_contain_text("Not saved")
    write(page, "\0", "# sent\n")
    expect(page.locator("#draft-status")).to_contain_text("Saved")
    page.wait_for_timeout(300)  # for what was refused to be sent after all
    expect(page.locator("#draft-step")).to_contain_text("Draft.")
    editor.fill(f"{sound}# as typed\n")
    send.click()
    expect(page.locator("#draft-step")).to_contain_text("An admin will decide")
    assert page.locator("#id_text").input_value().endswith("# as typed\n")


def test_what_was_not_seen_is_not_sent(page: Page, stack: Stack) -> None:
    """Saved in another tab while this one is as it was, though its panel has come anew."""
    sign_up(page, stack.url, "unseeing")
    begin_example(page, stack.url)
    other = page.context.new_page()
    other.goto(page.url)
    write(other, '"scaled_sum"', '"unseen_sum"')
    expect(other.locator("#draft-status")).to_contain_text("Saved")
    with page.expect_response(page.url.split("?")[0]):
        page.evaluate(REFRESH)
    expect(page.locator("#draft-actions [name=revision]").first).to_have_value("2")
    page.get_by_role("button", name="Send to review").click()
    expect(page.get_by_role("alert")).to_contain_text("Its files have changed since you opened it")
    page.get_by_role("button", name="Send to review").click()
    expect(page.locator("#draft-step")).to_contain_text("An admin will decide")


def test_a_file_is_deleted_after_a_second_click(page: Page, stack: Stack) -> None:
    sign_up(page, stack.url, "tidier")
    begin_example(page, stack.url)
    page.locator("#draft-files").get_by_role("button", name="kernels/naive.cpp").click()
    page.get_by_text("Rename or delete").click()
    page.get_by_text("Delete kernels/naive.cpp", exact=True).click()
    fits(page)
    expect(page.locator("#draft-files")).to_contain_text("kernels/naive.cpp")
    page.get_by_role("button", name="Delete kernels/naive.cpp permanently").click()
    expect(page.locator("#draft-files")).not_to_contain_text("kernels/naive.cpp")


JUDGES = """
from django.contrib.auth.models import User
from django.utils import timezone
from runs_app.features.curation.drafts import page as draft_page, services
judge = User.objects.create_superuser('panel-judge', password='{password}')
files = draft_page.example_files()
files['task.toml'] = files['task.toml'].replace('"scaled_sum"', '"panel_sum"')
draft = services.create_draft(user=judge, files=files, now=timezone.now())
services.send_to_review(draft=draft, user=judge, now=timezone.now())
print(draft.get_absolute_url())
"""
ENDS = """
from django.utils import timezone
from tasks_app.models import Draft, Soundness
version = Draft.objects.get(name='panel_sum').version
fields = dict(passed={passed}, survivors={survivors}, mutants=3, filters=2, document={{}})
fields['created_at'] = timezone.now()
Soundness.objects.update_or_create(version=version, kind='cpu', defaults=fields)
"""
REFRESH = "document.body.dispatchEvent(new Event('findings-changed'))"  # as draft.js says it


def leave_empty(page: Page, stack: Stack, passing: str) -> None:
    """What comes while nothing is typed yet is shown once the reason is left; a pass ends it."""
    step, panel = page.locator("#draft-step"), page.locator("#draft-actions")
    reason = page.get_by_label("Why", exact=True)
    reason.focus()
    stack.run("manage.py", "shell", "-v", "0", "-c", ENDS.format(passed=False, survivors=["ones"]))
    page.evaluate(REFRESH)
    expect(step).to_contain_text("1 of 3 wrong kernels pass (ones)")
    expect(reason).to_be_focused()
    reason.blur()
    expect(panel).to_contain_text("it is not proven sound")
    stack.run("manage.py", "shell", "-v", "0", "-c", passing)
    page.evaluate(REFRESH)
    expect(panel).not_to_contain_text("it is not proven sound")


def test_what_may_be_decided_follows_a_check_but_for_a_reason_that_is_typed(
    page: Page, stack: Stack
) -> None:
    address = stack.run("manage.py", "shell", "-v", "0", "-c", JUDGES.format(password=PASSWORD))
    sign_in(page, stack.url, "panel-judge")
    page.goto(stack.url + address.split()[-1])
    step, panel = page.locator("#draft-step"), page.locator("#draft-actions")
    expect(panel).to_contain_text("it is not proven sound")
    passing = ENDS.format(passed=True, survivors=[])
    stack.run("manage.py", "shell", "-v", "0", "-c", passing)
    page.evaluate(REFRESH)
    expect(step).to_contain_text("No problems were found")
    expect(panel).not_to_contain_text("it is not proven sound")
    expect(page.get_by_text("Publish anyway")).to_have_count(0)
    page.locator("main").get_by_text("Close", exact=True).click()
    reason = page.get_by_label("Why", exact=True)
    leave_empty(page, stack, passing)
    page.locator("main").get_by_text("Close", exact=True).click()
    reason.fill("Half a sentence")
    stack.run("manage.py", "shell", "-v", "0", "-c", ENDS.format(passed=False, survivors=["zeros"]))
    page.evaluate(REFRESH)
    expect(step).to_contain_text("1 of 3 wrong kernels pass (zeros)")
    expect(reason).to_have_value("Half a sentence")
    page.get_by_role("button", name="Publish", exact=True).click()  # of what was seen before
    expect(page.get_by_role("alert")).to_contain_text("A soundness report has arrived since")
    expect(panel).to_contain_text("it is not proven sound")
