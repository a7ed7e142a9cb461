"""An admin has a language model judge a draft, and reads the answer without loading the page."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from kbench_web.processes.installation import WORKER_OPTIONS
from tests.browser.conftest import Stack
from tests.browser.walking import PASSWORD, begin_example, sign_in
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint

SAID = {
    "redundancy": {"flagged": True, "reason": "The second factor is always one."},
    "inefficiency": {"flagged": False, "reason": "It is one call of the library."},
}
PREPARED = """
from django.contrib.auth.models import User
from django.utils import timezone
from runs_app.models import LanguageModel
User.objects.create_superuser('judge-admin', password='{password}')
priced = dict(price_in_usd=1, price_out_usd=2, created_at=timezone.now())
LanguageModel.objects.create(name='careful-judge', base_url='{address}', **priced)
"""


@pytest.fixture
def endpoint(stack: Stack) -> Iterator[ScriptedEndpoint]:
    """An endpoint that answers, the site's worker that asks, and an admin."""

    def answer(asked: Asked) -> Answer:
        assert "my_judged_sum" in asked.prompt or "Scaled sum" in asked.prompt
        return Answer(f"```json\n{json.dumps(SAID)}\n```", usage={"prompt_tokens": 1})

    with ScriptedEndpoint(answer) as scripted:
        words = PREPARED.format(password=PASSWORD, address=scripted.base_url)
        stack.run("manage.py", "shell", "-c", words)
        stack.spawn("calls", "manage.py", "rqworker", "calls", *WORKER_OPTIONS)
        yield scripted
        worker = stack.processes.pop()
        worker.terminate()
        worker.wait(30)


def test_a_draft_is_judged(page: Page, stack: Stack, endpoint: ScriptedEndpoint) -> None:
    sign_in(page, stack.url, "judge-admin")
    begin_example(page, stack.url)
    editor = page.locator("#id_text")
    editor.fill(editor.input_value().replace('"scaled_sum"', '"my_judged_sum"'))
    page.get_by_label("Cost limit (USD)").fill("0.25")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#draft-status")).to_contain_text("no problems found")
    rows = page.locator("#judgement-rows")
    expect(rows).to_contain_text("careful-judge")
    expect(rows).to_contain_text("The second factor is always one.")
    expect(rows).to_contain_text("No inefficiency")
    expect(page.get_by_label("Cost limit (USD)")).to_have_value("0.25")
    assert len(endpoint.asked) == 1
    editor.fill(editor.input_value().replace("my_judged_sum", "our_judged_sum"))
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        editor.press("Control+s")
    page.reload()
    expect(rows).to_contain_text("earlier files")
    expect(page.locator("#draft-log")).to_contain_text("Asked a language model")
