"""Pages of tasks say which checks wait or run, so that nobody asks for them again."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from runs_app.core.checks.services import request_check
from runs_app.models import Status, TaskCheck
from tasks_app.models import TaskVersion
from tests import factories as make

pytestmark = pytest.mark.django_db


def ask(version: TaskVersion) -> TaskCheck:
    return request_check(
        version=version, device=make.make_cpu(), user=make.make_admin(), now=make.NOW
    )


def pages(version: TaskVersion) -> list[str]:
    names = ("task-curate", "task-soundness")
    return [reverse("curate"), *(reverse(name, args=[version.task.slug]) for name in names)]


def test_a_check_that_has_not_ended_is_told_of(admin_client: Client) -> None:
    version = make.make_task_version()
    check = ask(version)
    for status, words in ((Status.QUEUED, "waits"), (Status.RUNNING, "runs")):
        TaskCheck.objects.update(status=status, started_at=make.NOW)
        for page in pages(version):
            text = admin_client.get(page).content.decode()
            assert f">A check</a> {words} on {check.device_id}</span>" in text, page
    TaskCheck.objects.update(status=Status.CANCELLED, finished_at=make.NOW)
    for page in pages(version):
        assert ">A check</a>" not in admin_client.get(page).content.decode()


def test_many_tasks_take_one_query(
    admin_client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = make.make_task_version()
    admin_client.get(reverse("curate"))
    with CaptureQueriesContext(connection) as before:
        admin_client.get(reverse("curate"))
    for name in ("b", "c", "d"):
        ask(make.make_task_version(name=name))
    ask(first)
    with django_assert_num_queries(len(before)):
        text = admin_client.get(reverse("curate")).content.decode()
    assert text.count(">A check</a> waits") == 2 * 4  # in wide and in narrow tables
