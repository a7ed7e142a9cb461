"""The page on which submissions are evaluated again: previewed, started, watched."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from runs_app.core.errors import WrongState
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.models import Submission
from tasks_app.models import TaskVersion
from tests import factories as make
from tests.unit.runs_app.features.reevaluation.reevaluated import (
    begin,
    entered,
    next_version,
)

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
