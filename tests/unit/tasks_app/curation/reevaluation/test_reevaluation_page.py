"""The page on which submissions are evaluated again: previewed, started, watched."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from runs_app.errors import WrongState
from runs_app.models import Submission
from tasks_app.models import AuditEntry, TaskVersion
from tests import factories as make
from tests.unit.tasks_app.curation.reevaluation.reevaluated import (
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


def test_the_page_is_for_admins(admin: Client, client: Client) -> None:
    version = entered("fast").task_version
    assert client.get(page(version)).status_code == 302
    client.force_login(make.make_user())
    assert client.get(page(version)).status_code == 403
    assert client.post(page(version), {"count": "1"}).status_code == 403
    assert admin.get(page(version)).status_code == 200
    assert admin.get(page(version, "act=99")).status_code == 404


def test_the_page_previews_starts_and_watches(admin: Client) -> None:
    entered("fast", 3.0)
    entered("slow", 1.5)
    version = next_version()
    text = admin.get(page(version, "what=top&top=1&device=cpu")).content.decode()
    assert "Queue 1 evaluation<" in text
    assert "1 place of version 1 would fall out" in text
    fields = {"version": "1", "what": "top", "top": "1", "device": "cpu", "target": "2"}
    answer = admin.post(page(version), fields | {"count": "7"})
    assert answer.status_code == 422
    assert "not the 7 that you saw" in answer.content.decode()
    assert "Queue 1 evaluation<" in answer.content.decode()
    assert not Submission.objects.filter(task_version=version).exists()
    answer = admin.post(page(version), fields | {"count": "1"})
    act = AuditEntry.objects.get(kind="reevaluated")
    assert answer.headers["Location"] == page(version, f"act={act.pk}")
    text = admin.get(answer.headers["Location"]).content.decode()
    assert "Under way: 0 of 1" in text
    assert 'hx-trigger="every 3s"' in text
    assert "not carried" in text
    copy = Submission.objects.get(task_version=version)
    text = admin.get(copy.get_absolute_url()).content.decode()
    assert "from version 1</a> by the site" in text
    cancel = reverse("task-reevaluate-cancel", args=[version.task.slug, act.pk])
    assert admin.post(cancel).status_code == 302
    fragment = admin.get(page(version, f"act={act.pk}"), headers={"HX-Request": "true"})
    assert "Done: 0 of 1" in fragment.content.decode()
    assert "hx-trigger" not in fragment.content.decode()
    assert "<html" not in fragment.content.decode()


def test_what_was_previewed_for_another_version_is_not_started(admin: Client) -> None:
    entered("fast")
    version = next_version()
    text = admin.get(page(version)).content.decode()
    assert '<input type="hidden" name="target" value="2">' in text
    next_version(description="the third version")  # as many would be queued there
    fields = {"version": "1", "what": "best", "device": "cpu", "count": "1"}
    for target in ({"target": "2"}, {}):
        answer = admin.post(page(version), fields | target)
        assert answer.status_code == 422
        assert "version 3 is the current one by now" in answer.content.decode().lower()
    assert not AuditEntry.objects.filter(kind="reevaluated").exists()


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("version=7", "version"),
        ("what=some&device=cpu", "what"),
        ("what=best", "device"),
        ("what=top&top=0&device=cpu", "top"),
    ],
)
def test_a_wrong_choice_names_its_field(admin: Client, address: str, field: str) -> None:
    version = entered("fast").task_version
    answer = admin.get(page(version, address))
    assert answer.status_code == 422
    assert f'href="#id_{field}"' in answer.content.decode()


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
