"""The workbench keeps the other files of a submission, and adds, replaces and removes them."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from runs_app.models import Submission
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

FILES = {"in/sum.h": "int sum;\n", "b.h": "int b;\n"}


@pytest.fixture
def first(client: Client) -> Submission:
    """A submission of three files, whose author is signed in."""
    submission = make.make_submission(files=FILES, entry="main.cpp")
    client.force_login(submission.author)
    return submission


def sent(client: Client, **changes: Any) -> Any:
    fields = {"task": "scale", "device": "cpu", "mode": "test", "written_by": "person"}
    kept = {"source": make.SOURCE, "entry": "main.cpp", "beside": json.dumps(FILES)}
    return client.post("/submit/", {**fields, **kept, **changes})


def newest() -> Submission:
    return Submission.objects.latest("created_at")


def test_the_files_of_a_submission_are_kept(client: Client, first: Submission) -> None:
    page = client.get(f"/submit/?submission={first.pk}").content.decode()
    assert "Add files (2 here)" in page
    assert page.index("Add files") < page.index('id="id_source"')
    assert 'name="drop"' in page
    assert '"int sum;\\n"' in unescape(page)
    assert sent(client).status_code == 302
    again = newest()
    assert (again.pk != first.pk, again.digest) == (True, first.digest)


def test_files_are_added_replaced_and_removed(client: Client, first: Submission) -> None:
    more = [
        SimpleUploadedFile("sum.h", b"float sum;\r\n"),
        SimpleUploadedFile("new.h", b"int added;\n"),
    ]
    assert sent(client, more=more, drop=["b.h"]).status_code == 302
    assert newest().files == {"in/sum.h": "float sum;\n", "new.h": "int added;\n"}
    assert sent(client, drop=["b.h", "in/sum.h"]).status_code == 302
    assert (newest().files, newest().entry) == ({}, "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"more": SimpleUploadedFile("x.so", b"x")}, "x.so' must end with one of"),
        ({"more": SimpleUploadedFile("x.h", b"\xff")}, "x.h is not UTF-8 text"),
        ({"more": SimpleUploadedFile("x.h", b"x" * (1 << 20) + b"y")}, "x.h has 1048577 bytes"),
        ({"beside": "{"}, "Enter a valid JSON"),
        ({"beside": "[1]"}, "The files must be an object"),
        ({"beside": '{"a.h": 1}'}, "The files must be an object"),
        ({"beside": '{"../a.h": "x"}'}, "'../a.h' must be a relative path"),
        ({"beside": '{"a.h": "x\\u0000"}'}, "'a.h' contains a NUL"),
        ({"beside": "[" * 100_000}, "Enter a valid JSON"),
        ({"beside": "1" * 5_000}, "Enter a valid JSON"),
        ({"beside": '{"a.h": "\\ud800"}'}, "'a.h' contains characters that UTF-8"),
        ({"beside": '{"\\ud800.h": "x"}'}, "\\ud800.h' must be a relative path"),
        ({"more": [SimpleUploadedFile("x.h", b"1"), SimpleUploadedFile("x.h", b"2")]}, "two files"),
        ({"entry": "main.py"}, "'main.py' must end with .cpp"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_lost(
    client: Client, first: Submission, changes: dict[str, Any], words: str
) -> None:
    answer = sent(client, **changes)
    assert answer.status_code == 422
    page = unescape(answer.content.decode())
    assert words in page
    assert "int sum;" in page or "beside" in changes
    assert Submission.objects.count() == 1


def test_an_upload_survives_an_error(client: Client, first: Submission) -> None:
    more = SimpleUploadedFile("new.h", b"int added;\n")
    page = unescape(sent(client, task="", more=more).content.decode())
    assert "int added;" in page
    assert "Add files (3 here)" in page
