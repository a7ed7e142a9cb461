"""The best kernels of many tasks are evaluated again: previewed, then queued."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs_app.features.reevaluation.models import Reevaluation
from runs_app.models import Evaluation, Submission
from tasks_app.models import Task
from tests import factories as make
from tests.unit.runs_app.features.reevaluation.reevaluated import entered, next_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

ADDRESS = "/curate/reevaluate/"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(make.make_admin())
    return client


@pytest.fixture
def form() -> dict[str, Any]:
    """One task with results on its version, one with a new version, one without results."""
    entered("fast", 3.0)
    entered("slow", 1.5)
    other = make.make_task_version(name="other")
    entered("fast", 2.0, task_version=other)
    next_version(name="other")
    make.make_task_version(name="bare")
    return {"task": ["scale", "other", "bare"], "device": "cpu", "back": "/curate/?q=s"}


def test_it_is_shown_first_and_queued_as_it_was_shown(admin: Client, form: dict[str, Any]) -> None:
    before = Evaluation.objects.count()
    answer = admin.post(ADDRESS, form)
    assert [(each.task.slug, each.plan.seen) for each in answer.context["changing"]] == [
        ("other", "1-2-1"), ("scale", "1-1-2"),
    ]  # fmt: skip
    text = answer.content.decode()
    assert "has no ranked result on CPU" in text
    assert "Queue 3 evaluations<" in text
    assert answer.context["estimate"].total_s == 120  # each took 40 s
    assert Evaluation.objects.count() == before
    sent = form | {"confirm": "1", "seen-scale": "1-1-2", "seen-other": "1-2-1"}
    answer = admin.post(ADDRESS, sent, follow=True)
    assert answer.redirect_chain == [("/curate/?q=s", 302)]
    assert "Left out 1: bare: has no ranked" in answer.content.decode()
    assert Evaluation.objects.count() == before + 3
    assert Submission.objects.filter(carried_from__isnull=False).count() == 1
    assert Reevaluation.objects.count() == 2
    text = admin.post(ADDRESS, sent, follow=True).content.decode()
    assert "under way already" in text
    assert Evaluation.objects.count() == before + 3


def test_what_has_changed_since_is_left_out(admin: Client, form: dict[str, Any]) -> None:
    Task.objects.filter(slug="other").update(state=Task.State.REVIEW)
    sent = form | {"confirm": "1", "seen-scale": "1-1-1", "seen-other": "1-2-1"}
    text = admin.post(ADDRESS, sent, follow=True).content.decode()
    assert "other: is not public" in text
    assert "not what you saw" in text
    assert not Reevaluation.objects.exists()


def test_wrong_forms_and_others_change_nothing(
    admin: Client, form: dict[str, Any], client: Client
) -> None:
    for wrong, words in (({"device": "abacus"}, "choose a device"), ({"task": []}, "select at")):
        text = admin.post(ADDRESS, form | wrong, follow=True).content.decode()
        assert f"Nothing is evaluated: {words}" in text
    for away in ("https://evil.example/", "//evil.example", "javascript:x", ""):
        answer = admin.post(ADDRESS, form | {"back": away, "device": "unknown"})
        assert answer.url == "/tasks/", away
    client.force_login(make.make_user())
    assert client.post(ADDRESS, form | {"confirm": "1"}).status_code == 403
    assert not Reevaluation.objects.exists()
