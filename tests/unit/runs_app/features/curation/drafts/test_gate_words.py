"""What pages say of a version that may not be published, or of which not all is known."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gpu_runner.data.verdict import DeviceKind
from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.services import create_draft, publish_draft, send_to_review
from tasks_app.models import Draft, Soundness, TaskVersion
from tests import factories as make

pytestmark = pytest.mark.django_db

BRIEF = "7 of 9 wrong kernels pass (wrong 1, wrong 2, wrong 3 and 4 more); 2 filters flag it: a, b"


@pytest.fixture
def judge(client: Client) -> User:
    """An admin, who is signed in."""
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


def report(version: TaskVersion | None, survivors: int = 0, untried: int = 0) -> Soundness:
    """A report of nine wrong kernels; with survivors, two filters flag it as well."""
    names = [f"wrong {number}" for number in range(1, 10)]
    states = [*["survived"] * survivors, *["untried"] * untried, *["failed"] * 9][:9]
    mutants = [
        {"name": name, "direction": "forward", "state": state, "workload": "n256", "scaled": 2.0}
        for name, state in zip(names, states, strict=True)
    ]
    flagged = ["a", "b"] if survivors else []
    filters = [{"name": name, "direction": "forward", "passed": False} for name in flagged]
    return Soundness.objects.create(
        version=version, kind="cpu", device="cpu", created_at=make.NOW, passed=not survivors,
        mutants=9, survivors=[f"forward: {name}" for name in names[:survivors]],
        filters=3, flagged=[f"forward: {name}" for name in flagged],
        document={"mutants": mutants, "filters": filters},
    )  # fmt: skip


def in_review(user: User, **files: str) -> Draft:
    texts = draft_page.example_files() | files
    draft = create_draft(user=user, files=texts, now=make.NOW)
    return send_to_review(draft=draft, user=user, now=make.NOW)


def act(client: Client, draft: Draft, action: str, **values: Any) -> str:
    seen = draft.version.evidence if draft.version else ""
    posted = {"action": action, "revision": draft.revision, "reports": seen, **values}
    return client.post(reverse("draft-act", args=[draft.pk]), posted).content.decode()


@pytest.mark.parametrize(
    ("survivors", "words"),
    [
        (1, "1 of 9 wrong kernels pass (wrong 1)"),
        (4, "4 of 9 wrong kernels pass (wrong 1, wrong 2, wrong 3, wrong 4)"),
        (7, "7 of 9 wrong kernels pass (wrong 1, wrong 2, wrong 3 and 4 more)"),
    ],
)
def test_a_few_names_stand_for_all(survivors: int, words: str) -> None:
    found = report(make.make_task_version(), survivors)
    assert found.brief_refusal == f"{words}; 2 filters flag it: a, b"
    assert "forward: wrong 1" in found.refusal
    assert found.refusal.count("wrong ") == survivors + 1


def test_a_refused_draft_names_all_that_pass_in_its_report_alone(
    client: Client, judge: User
) -> None:
    draft = in_review(judge)
    report(draft.version, survivors=7)
    text = client.get(draft.get_absolute_url()).content.decode()
    assert text.count(BRIEF) == 2  # what is to be done, and the head of the report
    assert text.count("wrong 7") == 2  # the list of those that pass, and the whole report
    button = text.partition('name="action" value="publish"')[0].rpartition("<button")[2]
    assert "primary" not in button
    assert "This will be refused" in text
    refused = act(client, draft, "publish")
    alert = refused.partition('role="alert"')[2].partition("</p>")[0]
    assert "needs a reason, under “Publish anyway”" in alert
    assert "wrong 1" not in alert
    assert '<details class="panel" open><summary>Publish anyway' in refused


def test_what_nothing_speaks_against_has_a_primary_button(client: Client, judge: User) -> None:
    draft = in_review(judge)
    report(draft.version)
    text = client.get(draft.get_absolute_url()).content.decode()
    button = text.partition('name="action" value="publish"')[0].rpartition("<button")[2]
    assert "primary" in button
    assert "This will be refused" not in text
    assert "untried" not in text


def test_wrong_kernels_that_were_not_tried_are_counted_wherever_none_passes(
    client: Client, judge: User
) -> None:
    draft = in_review(judge)
    report(draft.version, untried=2)
    text = client.get(draft.get_absolute_url()).content.decode()
    assert "2 of 9 wrong kernels were not tried" in text
    assert "no wrong kernel passes it (2 untried)" in text
    publish_draft(draft=draft, user=judge, now=make.NOW)
    for address in ("", "soundness/", "curate/"):
        text = client.get(f"/tasks/scaled_sum/{address}").content.decode()
        assert "(2 untried)" in text, address


def test_a_curated_task_names_few_and_says_where_all_are(client: Client, judge: User) -> None:
    version = make.make_task_version()
    report(version, survivors=7)
    text = client.get("/tasks/scale/curate/").content.decode()
    assert text.count(BRIEF) == 1
    assert "wrong 4" not in text
    assert 'href="/tasks/scale/soundness/"' in text
    assert "wrong 7" in client.get("/tasks/scale/soundness/").content.decode()
    assert "wrong 7" in client.get("/api/v1/tasks/scale/soundness").json()["refusal"]


def test_kinds_of_devices_without_hidden_workloads_are_said_to_who_decides(
    client: Client, judge: User
) -> None:
    words = "no hidden workloads on cpu and cuda"
    assert make.make_task_version().without_hidden == ()
    public = draft_page.example_files()["task.toml"].replace("hidden = true\n", "")
    author = make.make_user()
    draft = in_review(author, **{"task.toml": public})
    assert words in client.get(draft.get_absolute_url()).content.decode()
    other = Client()
    other.force_login(author)
    assert words not in other.get(draft.get_absolute_url()).content.decode()
    publish_draft(draft=draft, user=judge, override="seen", now=make.NOW)
    assert words in client.get("/tasks/scaled_sum/curate/").content.decode()
    assert "No hidden workloads" not in client.get("/tasks/scale/curate/").content.decode()


def test_one_kind_alone_may_lack_hidden_workloads() -> None:
    public, hidden = make.make_task().workloads[0], make.make_task().workloads[2]
    rows = (public, dataclasses.replace(hidden, devices=(DeviceKind.CUDA,)))
    assert make.make_task_version(workloads=rows).without_hidden == ("cpu",)
