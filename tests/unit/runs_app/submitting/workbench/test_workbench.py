"""The workbench: what it opens with, the attempts, other files, and what nobody may read."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from gpu_runner.data.verdict import Verdict
from runs_app.models import Evaluation, Submission
from runs_app.submitting.workbench.attempts import Attempt, attempts
from tasks_app.models import TaskVersion
from tests import factories
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def ada() -> User:
    return factories.make_user(username="ada")


@pytest.fixture
def signed_in(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def form(**overrides: Any) -> dict[str, Any]:
    """What the form sends for a good submission."""
    fields = {
        "task": "scale", "direction": "forward", "device": "cpu", "mode": "ranked",
        "source": factories.SOURCE, "written_by": "person",
    }  # fmt: skip
    return fields | overrides


def shown(client: Client, address: str) -> str:
    """Text of a page that is there."""
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def source_of(page: str) -> str:
    """What the editor holds."""
    found = re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    assert found is not None
    return found[1].strip()


def test_the_task_stands_beside_the_editor(client: Client) -> None:
    factories.make_task_version()
    page = shown(client, "/submit/?task=scale")
    assert "void scale(float* out, const float* x, int N)" in page
    assert "N=256" in page
    assert "1777" not in page, "a hidden workload is shown"
    assert "1 more is hidden" in page
    assert "kbench-good" in page
    assert 'id="starter"' in page
    assert client.get("/submit/task/?task=nothing").status_code == 404
    assert "Choose a task" in shown(client, "/submit/task/")


def test_a_python_module_is_begun_and_entered(signed_in: Client) -> None:
    factories.make_task_version()
    page = shown(signed_in, "/submit/?task=scale&kernel=starter.py")
    assert "def forward(x, N):" in source_of(page)
    assert "# returns out" in source_of(page)
    assert '<option value="python" selected>Python</option>' in page
    assert 'id="python-starter"' in page
    source = "import torch\ndef forward(x, N):\n    return x * 2\n"
    answer = signed_in.post("/submit/", form(language="python", source=source), **HTMX)
    assert answer.status_code == 200
    assert "it only calls libraries" in answer.content.decode()
    upload = SimpleUploadedFile("mine.py", b"def forward(x, N):\n    return x\n")
    signed_in.post("/submit/", form(source="", file=upload))
    assert [each.language for each in Submission.objects.all()] == ["python"] * 2
    factories.make_runner(packages={"numba": ""})
    source = "import numba\ndef forward(x, N):\n    return x\n"
    answer = signed_in.post("/submit/", form(language="python", source=source), **HTMX)
    assert answer.status_code == 422
    assert '<a href="#id_source">' in answer.content.decode()
    assert Submission.objects.count() == 2


def test_what_nobody_may_read_opens_nothing(signed_in: Client, ada: User) -> None:
    version = factories.make_task_version()
    for query in (
        "task=scale&kernel=notes.json",
        "task=scale&kernel=../secret",
        "task=nothing&kernel=starter",
        "submission=none",
        f"submission={UUID(int=0)}",
    ):
        assert signed_in.get(f"/submit/?{query}").status_code == 404
        refused = 404 if "kernel" in query else 400  # it knows no parameter `submission`
        assert signed_in.get(f"/submit/source/?{query}").status_code == refused
    mine = factories.make_submission(user=ada, private=True, task_version=version)
    assert signed_in.get(f"/submit/?submission={mine.pk}").status_code == 200
    assert Client().get(f"/submit/?submission={mine.pk}").status_code == 404
    signed_in.force_login(factories.make_user())
    assert signed_in.get(f"/submit/?submission={mine.pk}").status_code == 404


def test_a_script_gets_the_console(signed_in: Client) -> None:
    factories.make_task_version()
    answer = signed_in.post("/submit/", form(), **HTMX)
    submission = Submission.objects.get()
    assert answer.status_code == 200
    assert answer["HX-Replace-Url"] == f"/submit/?submission={submission.pk}"
    text = answer.content.decode()
    assert f'data-submission="{submission.pk}"' in text
    assert 'id="live"' in text
    assert "<html" not in text
    left = text[text.index('id="quota-left"') :].split("</span>")[0]
    assert "1 of at most" in left, "what is left counts this one"
    answer = signed_in.post("/submit/", form(source=""), **HTMX)
    assert (answer.status_code, answer["HX-Retarget"]) == (422, "#refusal")
    authors = {"written_by": "agent", "agent": "<b>", "language_model": "<i>"}
    said = signed_in.post("/submit/", form(**authors), **HTMX).content.decode()
    for name, label in (("agent", "Agent"), ("language_model", "Language model")):
        assert f'<a href="#id_{name}">{label}</a>: Must start with' in said, "all at once"
    answer = Client().post("/submit/", form(), **HTMX)
    assert answer["HX-Redirect"].startswith("/sign-in/?next=/submit/%3Ftask%3Dscale")
    assert Submission.objects.count() == 1


def test_wrong_fields_and_what_the_service_refuses_are_said_at_once(signed_in: Client) -> None:
    factories.make_task_version()
    wrong = form(written_by="agent", agent="", direction="backward", language_model="m" * 101)
    answer = signed_in.post("/submit/", wrong, **HTMX)
    text = answer.content.decode()
    assert (answer.status_code, text.count("<li")) == (422, 3), text
    for words in ("Name the agent", "at most 100", "has only: forward"):
        assert words in text
    upload = SimpleUploadedFile("mine.cpp", b"\xff")
    answer = signed_in.post("/submit/", form(source="", file=upload, device="abacus"), **HTMX)
    assert answer.content.decode().count("<li") == 2
    assert not Submission.objects.exists()


def test_one_may_start_from_the_leader(signed_in: Client) -> None:
    version = factories.make_task_version()
    best = factories.make_finished_evaluation(
        task_version=version, mode="ranked", result={"latency_ns": 10.0}
    )
    hidden = factories.make_finished_evaluation(task_version=version, private=True, mode="ranked")
    text = shown(signed_in, "/submit/task/?task=scale&device=cpu&direction=forward")
    assert "the leader" in text
    assert f"/submissions/{best.submission_id}/source/" in text
    assert str(hidden.submission_id) not in text


def tried(ada: User, version: TaskVersion, hour: int, **overrides: Any) -> Evaluation:
    """A finished attempt of hers, at some hour."""
    at = factories.NOW + timedelta(hours=hour)
    values: dict[str, Any] = {"mode": "quick", "source": f"{factories.SOURCE}// {hour}\n"}
    return factories.make_finished_evaluation(
        **{**values, "task_version": version, "user": ada, "now": at, **overrides}
    )


def rows_of(version: TaskVersion, user: User) -> list[Attempt]:
    """Her attempts on the CPU, newest first."""
    return list(attempts(version, "forward", factories.make_cpu(), user).rows)


def test_what_was_right_in_a_quick_run_may_be_ranked_once(ada: User) -> None:
    version = factories.make_task_version()
    tried(ada, version, 1)
    tried(ada, version, 2, verdict=Verdict.WRONG_RESULT)
    tried(ada, version, 3, private=True)
    ranked = tried(ada, version, 4, mode="ranked")
    tried(ada, version, 5, source=ranked.submission.source)
    assert [row.may_rank for row in rows_of(version, ada)] == [False] * 4 + [True]


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
        ({"beside": '{"a.h": 1}'}, "The files must be an object"),
        ({"beside": '{"../a.h": "x"}'}, "'../a.h' must be a relative path"),
        ({"beside": "1" * 5_000}, "Enter a valid JSON"),
        ({"beside": '{"a.h": "\\ud800"}'}, "'a.h' contains characters that UTF-8"),
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


def test_an_attempt_is_ranked_by_its_author_alone(signed_in: Client, ada: User) -> None:
    version = factories.make_task_version()
    own, other = tried(ada, version, 1), factories.make_finished_evaluation(task_version=version)
    for each, status in ((own, 200), (other, 422)):
        address = f"/submit/rank/{each.submission_id}/"
        assert signed_in.post(address, {"device": "cpu"}, **HTMX).status_code == status
    [row] = rows_of(version, ada)
    assert (row.evaluation.mode, row.evaluation.status) == ("ranked", "QUEUED")
