"""Asking a language model about a task in the browser: who may, what is said, what is stored."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs_app import jobs
from runs_app.core.messaging import queues
from runs_app.features.advice.models import TaskJudgement
from runs_app.features.advice.page import judgements_of
from runs_app.models import LanguageModel
from tasks_app.models import AuditEntry, Draft, TaskVersion
from tests import factories as make
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint
from tests.unit.runs_app.features.curation.drafted import draft_of

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
FORM = {"model": "judge", "max_usd": "0.5"}
PAGE = "/tasks/scale/versions/1/judgements/"
VERDICTS = {
    "redundancy": {"flagged": True, "reason": "Line 2 adds <b>zero</b>."},
    "inefficiency": {"flagged": False, "reason": "One call of the library."},
}
SAID = Answer(
    f"```json\n{json.dumps(VERDICTS)}\n```", usage={"prompt_tokens": 400, "completion_tokens": 50}
)


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the calls that went to RQ."""
    calls: list[str] = []
    monkeypatch.setattr(queues, "enqueue_call", lambda call: calls.append(str(call)))
    monkeypatch.setattr(queues, "has_worker", lambda _: False)
    return calls


@pytest.fixture
def model() -> LanguageModel:
    """Priced; tests that have it answer give it an address."""
    return make.make_judge()


@pytest.fixture
def admin(client: Client) -> Client:
    """An admin's browser."""
    client.force_login(make.make_user(username="root", is_staff=True))
    return client


@pytest.mark.usefixtures("model")
def test_an_admin_asks_about_a_version_and_everybody_reads_the_answer(
    admin: Client, queued: list[str]
) -> None:
    make.make_task_version()
    assert 'id="judgements-ask"' in admin.get("/tasks/scale/soundness/").content.decode()
    answer = admin.post(PAGE, FORM)
    assert (answer.status_code, answer["Location"]) == (302, "/tasks/scale/soundness/#judgements")
    assert "waiting to be" in admin.get(PAGE).content.decode()
    [row] = TaskJudgement.objects.all()
    found = judgements_of([row.version_id], row.created_at + timedelta(seconds=11))
    assert (found.under_way, "“calls”" in found.blocked) == (True, True), "nobody sends it"
    with ScriptedEndpoint([SAID]) as endpoint:
        LanguageModel.objects.update(base_url=endpoint.base_url)
        assert jobs.answer_call(queued[0])
    [judgement] = TaskJudgement.objects.all()
    assert [v["flagged"] for v in judgement.verdicts] == [True, False]
    rows = Client().get(PAGE).content.decode()
    assert "Line 2 adds &lt;b&gt;zero" in rows
    assert "hx-trigger" not in rows
    page = Client().get("/tasks/scale/soundness/").content.decode()
    assert "Line 2 adds &lt;b&gt;zero" in page
    assert 'id="judgements-ask"' not in page
    entry = AuditEntry.objects.get(kind=AuditEntry.Kind.JUDGED)
    assert (entry.actor.username, entry.details) == ("root", {"language model": "judge"})  # type: ignore[union-attr]


@pytest.mark.usefixtures("model")
def test_an_admin_asks_about_a_draft_as_it_is_and_earlier_answers_stay(
    admin: Client, queued: list[str]
) -> None:
    draft = draft_of(make.make_user(username="ada"))
    address = f"/drafts/{draft.pk}/judgements/"

    def script(asked: Asked) -> Answer:
        assert "return N * x" in asked.prompt
        assert make.HIDDEN_WORKLOAD not in asked.prompt
        return SAID

    page = admin.post(address, FORM, headers=HTMX).content.decode()
    assert "waiting to be" in page
    with ScriptedEndpoint(script) as endpoint:
        LanguageModel.objects.update(base_url=endpoint.base_url)
        assert jobs.answer_call(queued[0])
    assert "earlier files" not in admin.get(address).content.decode()
    assert "Line 2 adds" in admin.get(f"/drafts/{draft.pk}/").content.decode()
    Draft.objects.update(version=None)  # as a change of a file does
    assert "earlier files" in admin.get(address).content.decode()
    author = Client()
    author.force_login(User.objects.get(username="ada"))
    assert "Line 2 adds" in author.get(address).content.decode()
    assert author.post(address, FORM, headers=HTMX).status_code == 422
    assert len(queued) == 1
    Draft.objects.update(taken_by=User.objects.get(username="root"))
    assert author.get(address).status_code == 404
    assert "Line 2 adds" not in Client().get(address, headers=HTMX).content.decode()


@pytest.mark.usefixtures("model")
def test_only_admins_ask_and_not_twice_at_once(admin: Client, queued: list[str]) -> None:
    make.make_task_version()
    nobody, ada = Client(), Client()
    ada.force_login(make.make_user(username="ada"))
    assert nobody.post(PAGE, FORM, headers=HTMX).status_code != 200
    assert ada.post(PAGE, FORM, headers=HTMX).status_code != 200
    assert queued == []
    assert admin.post(PAGE, FORM, headers=HTMX).status_code == 200
    answer = admin.post(PAGE, FORM, headers=HTMX)
    assert (answer.status_code, len(queued)) == (422, 1)
    assert nobody.get("/tasks/scale/versions/7/judgements/").status_code == 404
    assert nobody.get("/tasks/other/versions/1/judgements/").status_code == 404


@pytest.mark.usefixtures("model")
def test_a_draft_that_has_faults_or_has_ended_is_not_asked_about(
    admin: Client, queued: list[str]
) -> None:
    draft = draft_of(make.make_user(username="ada"))
    address, whole = f"/drafts/{draft.pk}/judgements/", draft.files
    Draft.objects.update(files={**whole, "task.toml": "name = 1"})
    answer = admin.post(address, FORM, headers=HTMX)
    assert (answer.status_code, "Not asked." in answer.content.decode()) == (422, True)
    Draft.objects.update(files=whole, state=Draft.State.CLOSED)
    answer = admin.post(address, FORM, headers=HTMX)
    assert answer.status_code == 422
    assert not TaskVersion.objects.exists()
    assert queued == []
