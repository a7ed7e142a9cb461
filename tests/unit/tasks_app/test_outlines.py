"""What lists say of tasks is read from each document once."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tasks_app import selectors as module
from tasks_app.models import Task
from tasks_app.selectors import directions_of, outlines
from tests import factories as make

pytestmark = pytest.mark.django_db


def test_an_outline_is_what_the_document_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_known", {})
    version = make.make_task_version(description="adds two vectors")
    found = outlines([version.digest, "unknown"])
    workloads = version.document["workloads"]
    hidden = sum(bool(each.get("hidden")) for each in workloads)
    assert list(found) == [version.digest]
    outline = found[version.digest]
    assert (outline.public, outline.hidden) == (len(workloads) - hidden, hidden)
    assert outline.description == "adds two vectors"
    assert directions_of(Task.objects.all()) == {version.task.slug: outline.directions}


def test_a_list_reads_no_document_twice(client: Client) -> None:
    for name in ("one", "two"):
        make.make_task_version(name=name)
    board = "/leaderboard/?device=cpu"
    for address in ("/tasks/", "/api/v1/tasks", "/submit/", "/runs/new/", board):
        assert client.get(address).status_code == 200
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        read = [each["sql"] for each in queries if '"document"' in each["sql"]]
        assert [sql for sql in read if "environment" not in sql] == []  # of a host, not a result
