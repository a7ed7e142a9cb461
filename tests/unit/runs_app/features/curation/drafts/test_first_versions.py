"""What pages say of a version in review: of which task, what is known of it, what is to be done."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gpu_runner.data.verdict import DeviceKind
from runs_app.core.checks.services import cancel_check, request_check
from runs_app.core.messaging import orders
from runs_app.features.curation.decisions.services import retire
from runs_app.features.curation.drafts.services import close_draft, publish_draft, send_back
from runs_app.models import TaskCheck
from tasks_app.models import Draft, Soundness, Task, TaskVersion
from tasks_app.publishing.services import store_version
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import (
    act,
    created,
    example,
    in_review,
    prove,
    shown,
    signed_in,
)

pytestmark = pytest.mark.django_db

SLUG = "scaled_sum"
BULK: dict[str, Any] = {"task": [SLUG], "device": "cpu", "back": "/curate/", "reason": "it is time"}


@pytest.fixture
def judge(client: Client) -> User:
    """An admin, who is signed in."""
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


@pytest.fixture
def draft(monkeypatch: pytest.MonkeyPatch) -> Draft:
    """The draft of somebody else, in review; a device could check it."""
    monkeypatch.setattr(orders, "enqueue", lambda *args, **kwargs: True)
    make.make_cpu()
    return in_review(make.make_user(username="ada"), SLUG)


def fail(draft: Draft) -> None:
    prove(draft.version, passed=False, mutants=28, survivors=["forward: zeros"] * 20)


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def counts(client: Client) -> tuple[int, int]:
    """How many tasks in review have no report, and how many one that speaks against them."""
    waiting = client.get("/curate/").context["waiting"]
    return waiting.without_report, waiting.refused


def test_the_table_and_the_counts_say_what_the_draft_says(
    client: Client, judge: User, draft: Draft
) -> None:
    entries = client.get(f"/curate/history/?task={SLUG}").context["page"]
    assert [entry.kind for entry in entries] == ["sent", "uploaded"]  # also before its version
    assert counts(client) == (1, 0)
    fail(draft)
    assert counts(client) == (0, 1)
    row = client.get("/curate/?state=review&soundness=failed").context["page"][0]
    assert (row.task.slug, row.version, row.device) == (SLUG, draft.version, "CPU")
    public = make.make_task_version()  # of which the table speaks, not of its draft
    task, new, _ = store_version(make.make_task(title="Tried"), make.NOW)
    fields = {"created_at": make.NOW, "changed_at": make.NOW, "author": judge, "files": {}}
    fail(Draft.objects.create(task=task, version=new, state="review", **fields))
    row = client.get("/curate/?q=scale+vector").context["page"][0]
    assert (row.version, row.soundness) == (public, "none")
    assert counts(client) == (0, 1)
    send_back(draft=draft, user=judge, reason="mend it", now=make.NOW)
    assert counts(client) == (0, 0)
    assert client.get("/curate/?soundness=failed").context["page"][0].version == draft.version


def test_a_first_version_is_checked_in_bulk_and_published_on_its_draft(
    client: Client, judge: User, draft: Draft
) -> None:
    client.post("/curate/check/", BULK)
    assert TaskCheck.objects.get().version == draft.version
    text = client.post("/curate/bulk/", BULK | {"action": "publish"}).content.decode()
    assert f'href="{draft.get_absolute_url()}"' in text
    for action in ("publish", "retire"):
        client.post("/curate/bulk/", BULK | {"action": action, "confirm": "1"})
        assert Task.objects.get().state == Task.State.REVIEW


def test_what_is_to_be_done_depends_on_the_check(client: Client, judge: User, draft: Draft) -> None:
    def step() -> str:
        text = page(client, draft.get_absolute_url())
        return text.partition('id="draft-step"')[2].partition("</p>")[0]

    assert draft.version is not None
    asked = {"version": draft.version, "user": judge, "now": make.NOW}
    assert "Check it" in step()
    check = request_check(device=make.make_cpu(), **asked)
    assert ("under way" in step(), "Check it" in step()) == (True, False)
    fail(draft)
    cancel_check(check=check, user=judge, now=make.NOW)
    assert ("20 of 28" in step(), "Check it" in step()) == (True, False)
    request_check(device=make.make_cpu(), **asked)
    assert "wait until it ends" in step()
    mine = created(judge, "own")
    prove(snapshot(draft=mine, now=make.NOW), passed=False, survivors=["forward: zeros"])
    text = page(client, mine.get_absolute_url())
    assert "Fix it" in text.partition('id="draft-step"')[2].partition("</p>")[0]


def test_a_draft_that_names_a_task_of_others_stands_in_no_log_of_it(
    client: Client, judge: User
) -> None:
    task, thief = make.make_task_version().task, make.make_user(username="thief")
    retire(task=task, user=judge, reason="old", now=make.NOW)
    draft = created(thief, task.slug)
    close_draft(draft=draft, user=thief, reason="name taken", now=make.NOW)
    for address in ("/tasks/scale/curate/", "/curate/history/?task=scale"):
        text = page(client, address)
        assert ">Retired<" in text, address
        assert "thief" not in text.partition("Entry</th>")[2], address
    csv = page(client, "/curate/history/?task=scale&format=csv")
    assert ("retired" in csv, "thief" in csv) == (True, False)
    assert "name taken" in page(client, "/curate/history/")
    assert "name taken" in page(client, draft.get_absolute_url())


BRIEF = "7 of 9 wrong kernels pass (wrong 1, wrong 2, wrong 3 and 4 more); 2 filters flag it: a, b"


FOUR = "wrong 1, wrong 2, wrong 3, wrong 4"


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
    return prove(
        version, passed=not survivors, mutants=9, filters=3,
        survivors=[f"forward: {name}" for name in names[:survivors]],
        flagged=[f"forward: {name}" for name in flagged],
        document={"mutants": mutants, "filters": filters},
    )  # fmt: skip


def test_a_refused_draft_names_all_that_pass_in_its_report_alone(
    client: Client, judge: User
) -> None:
    draft = in_review(judge)
    report(draft.version, survivors=7)
    text = shown(client, draft)
    assert text.count(BRIEF) == 2  # what is to be done, and the head of the report
    assert text.count("wrong 7") == 2  # the list of those that pass, and the whole report
    button = text.partition('name="action" value="publish"')[0].rpartition("<button")[2]
    assert "primary" not in button
    refused = act(client, draft, "publish").content.decode()
    assert "wrong 1" not in refused.partition('role="alert"')[2].partition("</p>")[0]
    assert '<details class="panel" open><summary>Publish anyway' in refused
    few = [report(make.make_task_version(name=f"few{count}"), count) for count in (1, 4)]
    assert few[0].brief_refusal.startswith("1 of 9 wrong kernels pass (wrong 1);")
    assert few[1].brief_refusal.startswith(f"4 of 9 wrong kernels pass ({FOUR});")
    assert few[1].refusal.count("wrong ") == 5


def test_wrong_kernels_that_were_not_tried_are_counted_wherever_none_passes(
    client: Client, judge: User
) -> None:
    draft = in_review(judge)
    report(draft.version, untried=2)
    text = shown(client, draft)
    assert "(2 untried)" in text
    button = text.partition('name="action" value="publish"')[0].rpartition("<button")[2]
    assert "primary" in button
    publish_draft(draft=draft, user=judge, now=make.NOW)
    for address in ("", "soundness/", "curate/"):
        text = client.get(f"/tasks/wave/{address}").content.decode()
        assert "(2 untried)" in text, address


def test_kinds_of_devices_without_hidden_workloads_are_said_to_who_decides(
    client: Client, judge: User
) -> None:
    words = "There are no hidden workloads on cpu and cuda"
    assert make.make_task_version().without_hidden == ()
    public = example()["task.toml"].replace("hidden = true\n", "")
    draft = in_review(**{"task.toml": public})
    assert words in shown(client, draft)
    assert words not in shown(signed_in(draft.author), draft)
    publish_draft(draft=draft, user=judge, override="seen", now=make.NOW)
    assert words in client.get("/tasks/wave/curate/").content.decode()
    first, hidden = make.make_task().workloads[0], make.make_task().workloads[2]
    rows = (first, dataclasses.replace(hidden, devices=(DeviceKind.CUDA,)))
    assert make.make_task_version(workloads=rows).without_hidden == ("cpu",)
