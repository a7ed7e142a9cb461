"""Submissions of one task or of many are evaluated again: previewed, started, watched."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from runs_app.core.errors import WrongState
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.models import Evaluation, Submission
from tasks_app.models import Task, TaskVersion
from tests import factories as make
from tests.unit.runs_app.features.reevaluation.reevaluated import begin, entered, next_version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def page(version: TaskVersion, address: str = "") -> str:
    url = reverse("task-reevaluate", args=[version.task.slug])
    return f"{url}?{address}" if address else url


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(make.make_admin())
    return client


def test_the_page_previews_and_starts_what_was_seen(admin: Client) -> None:
    entered("fast", 3.0)
    entered("slow", 1.5)
    version = next_version()
    text = admin.get(page(version, "version=1&device=cpu")).content.decode()
    assert "Queue 2 evaluations<" in text
    assert '<input type="hidden" name="seen" value="1-2-2">' in text
    fields = {"version": "1", "device": "cpu"}
    answer = admin.post(page(version), fields | {"seen": "1-2-7"})
    assert answer.status_code == 422
    assert "not what you saw" in answer.content.decode()
    assert "Queue 2 evaluations<" in answer.content.decode()
    assert not Submission.objects.filter(task_version=version).exists()
    answer = admin.post(page(version), fields | {"seen": "1-2-2"})
    row = Reevaluation.objects.get()
    progress = reverse("reevaluation", args=[version.task.slug, row.pk])
    assert answer.headers["Location"] == progress
    assert admin.post(page(version), fields | {"seen": "1-2-2"}).status_code == 422
    assert Submission.objects.filter(task_version=version).count() == 2


def test_what_was_started_is_watched_and_cancelled(admin: Client) -> None:
    entered("fast", 3.0)
    entered("slow", 1.5)
    version = next_version()
    row = begin(version)
    progress = reverse("reevaluation", args=[version.task.slug, row.pk])
    text = admin.get(progress).content.decode()
    assert "Under way: 0 of 2" in text
    assert 'hx-trigger="every 5s"' in text
    text = admin.get(page(version)).content.decode()
    assert f'href="{progress}"' in text
    assert "2 left out: under way already" in text
    copy = Submission.objects.filter(task_version=version)[0]
    text = admin.get(copy.get_absolute_url()).content.decode()
    assert "from version 1</a> by the site" in text
    cancel = reverse("task-reevaluate-cancel", args=[version.task.slug, row.pk])
    assert admin.post(cancel).headers["Location"] == progress
    fragment = admin.get(progress, headers={"HX-Request": "true"})
    assert "Done: 0 of 2" in fragment.content.decode()
    assert "hx-trigger" not in fragment.content.decode()
    assert "<html" not in fragment.content.decode()


def test_what_was_previewed_for_another_version_or_is_wrong_is_not_started(
    admin: Client, client: Client
) -> None:
    entered("fast")
    version = next_version()
    next_version(description="the third version")  # as many would be queued there
    fields = {"version": "1", "device": "cpu"}
    for seen in ({"seen": "1-2-1"}, {}):
        answer = admin.post(page(version), fields | seen)
        assert answer.status_code == 422
        assert "1 on version 3" in answer.content.decode()
    for field, value in (("version", "7"), ("device", "abacus")):
        address = page(version, f"{field}={value}")
        for answer in (admin.get(address), admin.post(page(version), {field: value})):
            assert answer.status_code == 422
            assert f'href="#id_{field}"' in answer.content.decode()
    client.force_login(make.make_user())
    assert client.post(page(version), {"count": "1"}).status_code == 403
    assert not Reevaluation.objects.exists()


def test_a_task_without_results_or_without_a_public_has_nothing_to_start(admin: Client) -> None:
    version = make.make_task_version()
    assert "nothing to evaluate again" in admin.get(page(version)).content.decode()
    make.make_finished_evaluation(mode="ranked", task_version=version)
    version.task.state = "retired"
    version.task.save()
    text = admin.get(page(version)).content.decode()
    assert "This task is not public" in text
    assert '<button class="button primary"' not in text
    with pytest.raises(WrongState):
        begin(version)


ADDRESS = "/curate/reevaluate/"


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
