"""Every page of the admin opens, and what only services may change cannot be changed there."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from kbench_web.models import ApiToken
from runs_app.core.integrity.quarantine import decide
from runs_app.features.advice.models import TaskJudgement
from runs_app.features.transfer.models import ResultImport
from runs_app.models import (
    BaselineMeasurement,
    LanguageModel,
    LanguageModelCall,
    TaskCheck,
    VerifierPrompt,
)
from tasks_app.models import AuditEntry, TaskVersion
from tasks_app.publishing.audit_log import add_entry
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import held
from tests.unit.runs_app.features.challenges.invented import new_challenge, new_entry

pytestmark = pytest.mark.django_db

OURS = ("kbench_web", "tasks_app", "runs_app")


def models() -> list[type[Model]]:
    return [model for model in admin.site._registry if model._meta.app_label in OURS]


def address(model: type[Model], page: str, *arguments: object) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    return reverse(name, args=arguments)


@pytest.fixture
def client() -> Client:
    user = make.make_admin()
    make.make_token(user)
    make.make_runner()
    make.make_finished_evaluation(agent="evolver", language_model="gpt-9")
    evaluation = held(task_version=TaskVersion.objects.get())
    assert evaluation.quarantine_case is not None
    decide(case=evaluation.quarantine_case, user=user, state="cleared", reason="fine", now=make.NOW)
    VerifierPrompt.objects.create(verifier="compile", version=2, text="Look.", created_at=make.NOW)
    judged_by = LanguageModelCall.objects.create(
        role="judge", language_model=LanguageModel.objects.get(), messages=[], temperature=0.0,
        max_tokens=1, created_at=make.NOW,
    )  # fmt: skip
    version = TaskVersion.objects.get()
    TaskJudgement.objects.create(version=version, call=judged_by, created_at=make.NOW)
    queued = {"device": make.make_cpu(), "created_at": make.NOW, "queued_at": make.NOW}
    TaskCheck.objects.create(version=version, asked_by=user, **queued)
    BaselineMeasurement.objects.create(version=version, direction="forward", **queued)
    ResultImport.objects.create(
        site="elsewhere", digest="0" * 64, results=1, exported_at=make.NOW, imported_at=make.NOW
    )
    add_entry(AuditEntry.Kind.LOADED, now=make.NOW, version=version)
    new_entry(new_challenge(tasks=("scale",)), make.make_user(), agent="")
    signed_in = Client()
    signed_in.force_login(user)
    return signed_in


def test_lists_and_rows_open_and_nothing_is_added(client: Client) -> None:
    digests = list(ApiToken.objects.values_list("digest", flat=True))
    statuses, told = {}, set()
    for model in models():
        row = model._default_manager.first()
        assert row is not None, model
        pages = [address(model, "changelist"), address(model, "change", row.pk)]
        answers = [client.get(page) for page in [*pages, address(model, "add")]]
        statuses[model.__name__] = [answer.status_code for answer in answers]
        told |= {digest for digest in digests if digest in answers[1].content.decode()}
    assert statuses == {name: [200, 200, 403] for name in statuses}
    assert told == set()
    token = ApiToken.objects.get()
    form = {"action": "revoke", "_selected_action": [token.pk]}
    assert client.post(address(ApiToken, "changelist"), form).status_code == 302
    token.refresh_from_db()
    assert token.revoked_at is not None
    client.force_login(make.make_user())
    assert client.get(reverse("admin:index")).status_code == 302


def test_lists_take_as_many_queries_with_more_rows(client: Client) -> None:
    def asked() -> dict[str, int]:
        counts = {}
        for model in models():
            with CaptureQueriesContext(connection) as queries:
                client.get(address(model, "changelist"))
            counts[model.__name__] = len(queries)
        return counts

    asked()
    before = asked()
    for number in range(3):
        version = make.make_task_version(name=f"more_{number}")
        make.make_finished_evaluation(task_version=version, agent=f"agent {number}")
    assert asked() == before
