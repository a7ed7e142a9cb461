"""A task that was never public: pages speak of the version of its draft, which is in review."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs_app.core.checks.services import cancel_check, request_check
from runs_app.core.messaging import orders
from runs_app.features.curation.decisions.services import retire
from runs_app.features.curation.drafts import page as draft_page
from runs_app.features.curation.drafts.services import (
    close_draft,
    create_draft,
    send_back,
    send_to_review,
)
from runs_app.models import TaskCheck
from tasks_app.models import AuditEntry, Draft, Soundness, Task, TaskVersion
from tasks_app.publishing.services import store_version
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make

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
    return proposed(make.make_user(username="ada"))


def proposed(user: User) -> Draft:
    files = draft_page.example_files()
    draft = create_draft(user=user, files=files, now=make.NOW)
    return send_to_review(draft=draft, user=user, now=make.NOW)


def version_of(draft: Draft) -> TaskVersion:
    assert draft.version is not None
    return draft.version


def fail(draft: Draft) -> None:
    Soundness.objects.create(
        version=version_of(draft), passed=False, mutants=28, survivors=["forward: zeros"] * 20,
        kind="cpu", device="the CPU", document={}, created_at=make.NOW,
    )  # fmt: skip


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def step(client: Client, draft: Draft) -> str:
    """What the draft's page says is to be done next."""
    text = page(client, draft.get_absolute_url())
    return " ".join(text.partition('id="draft-step"')[2].partition("</p>")[0].split())


def counts(client: Client) -> tuple[int, int]:
    """How many tasks in review have no report, and how many one that speaks against them."""
    waiting = client.get("/curate/").context["waiting"]
    return waiting.without_report, waiting.refused


def test_the_table_and_the_counts_say_what_the_draft_says(
    client: Client, judge: User, draft: Draft
) -> None:
    assert counts(client) == (1, 0)
    fail(draft)
    assert counts(client) == (0, 1)
    row = client.get("/curate/?state=review&soundness=failed").context["page"][0]
    assert (row.task.slug, row.version, row.device) == (SLUG, draft.version, "the CPU")
    assert "version 1" in page(client, "/curate/").partition('id="curate-table"')[2]
    send_back(draft=draft, user=judge, reason="mend it", now=make.NOW)
    assert counts(client) == (0, 0)
    assert client.get("/curate/?soundness=failed").context["page"][0].version == draft.version


def test_of_a_task_with_a_current_version_its_table_speaks_of_that_one(
    client: Client, judge: User, draft: Draft
) -> None:
    version = make.make_task_version()
    task, new, _ = store_version(make.make_task(title="Tried"), make.NOW)
    fields = {"created_at": make.NOW, "changed_at": make.NOW, "author": judge, "files": {}}
    fail(Draft.objects.create(task=task, version=new, state="review", **fields))
    row = client.get("/curate/?q=scale+vector").context["page"][0]
    assert (row.version, row.soundness) == (version, "none")
    assert counts(client) == (1, 0)


def test_many_checks_take_the_version_in_review(client: Client, judge: User, draft: Draft) -> None:
    text = client.post("/curate/check/", BULK, follow=True).content.decode()
    assert "1 check on CPU under way." in text
    assert TaskCheck.objects.get().version == draft.version
    assert "A check</a> waits" in text.partition('id="curate-table"')[2]


def test_a_first_version_is_published_on_its_draft(
    client: Client, judge: User, draft: Draft
) -> None:
    text = client.post("/curate/bulk/", BULK | {"action": "publish"}).content.decode()
    assert "version 1 belongs to a draft in the state “in review”" in text
    assert f'href="{draft.get_absolute_url()}">Decide on its draft' in text
    client.post("/curate/bulk/", BULK | {"action": "publish", "confirm": "1"})
    assert Task.objects.get().state == Task.State.REVIEW
    retiring = client.post("/curate/bulk/", BULK | {"action": "retire"}).content.decode()
    assert "close its draft instead" in retiring


def test_what_is_to_be_done_depends_on_the_check(client: Client, judge: User, draft: Draft) -> None:
    asked = {"version": version_of(draft), "user": judge, "now": make.NOW}
    assert "Check it below, or send it back." in step(client, draft)
    check = request_check(device=make.make_cpu(), **asked)
    words = step(client, draft)
    assert "A check is under way: wait until it ends, then decide." in words
    assert "Check it" not in words
    fail(draft)
    cancel_check(check=check, user=judge, now=make.NOW)
    words = step(client, draft)
    assert "20 of 28 wrong kernels pass" in words
    assert "Send it back to be fixed, or publish it anyway and say why." in words
    assert "Check it" not in words
    request_check(device=make.make_cpu(), **asked)
    assert "wait until it ends, then decide." in step(client, draft)


def test_whoever_writes_it_is_told_of_a_check_and_of_what_it_found(
    client: Client, judge: User, draft: Draft
) -> None:
    del draft
    files = draft_page.example_files()
    files["task.toml"] = files["task.toml"].replace(SLUG, "own")
    mine = create_draft(user=judge, files=files, now=make.NOW)
    assert "Check it and try its kernels below" in step(client, mine)
    version = snapshot(draft=mine, now=make.NOW)
    check = request_check(version=version, device=make.make_cpu(), user=judge, now=make.NOW)
    assert "wait until it ends; if it is sound, send it to review." in step(client, mine)
    mine.refresh_from_db()
    fail(mine)
    assert "Its check found something, below. A check is under way" in step(client, mine)
    cancel_check(check=check, user=judge, now=make.NOW)
    assert "Fix it, or send it to review as it is." in step(client, mine)
    send_to_review(draft=mine, user=judge, now=make.NOW)
    assert "Take it back to be fixed, or publish it anyway" in step(client, mine)


def test_pages_of_versions_say_which_one_is_in_review(
    client: Client, judge: User, draft: Draft
) -> None:
    addresses = [f"/tasks/{SLUG}/{end}" for end in ("versions/", "versions/1/", "curate/")]
    for address in addresses:
        text = page(client, address)
        assert "in review" in text.partition("<main")[2], address
        assert ">never public<" not in text, address
    send_back(draft=draft, user=judge, reason="mend it", now=make.NOW)
    for address in addresses:
        assert "never public" in page(client, address), address


def test_a_draft_that_names_a_task_of_others_stands_in_no_log_of_it(
    client: Client, judge: User
) -> None:
    task, thief = make.make_task_version().task, make.make_user(username="thief")
    retire(task=task, user=judge, reason="old", now=make.NOW)
    files = draft_page.example_files()
    files["task.toml"] = files["task.toml"].replace(SLUG, task.slug)
    draft = create_draft(user=thief, files=files, now=make.NOW)
    close_draft(draft=draft, user=thief, reason="name taken", now=make.NOW)
    for address in ("/tasks/scale/curate/", "/curate/history/?task=scale"):
        text = page(client, address)
        assert ">Retired<" in text, address
        assert "thief" not in text.partition("Entry</th>")[2], address
    csv = page(client, "/curate/history/?task=scale&format=csv")
    assert ("retired" in csv, "thief" in csv) == (True, False)
    assert "name taken" in page(client, "/curate/history/")
    assert "name taken" in page(client, draft.get_absolute_url())


def test_entries_before_a_draft_had_a_version_are_of_its_task(
    client: Client, judge: User, draft: Draft
) -> None:
    kinds = [entry.kind for entry in client.get(f"/curate/history/?task={SLUG}").context["page"]]
    assert kinds == ["sent", "uploaded"]
    assert AuditEntry.objects.filter(task=None, name=SLUG).count() == 1
    Draft.objects.all().delete()
    Task.objects.all().delete()
    assert ">Sent to review<" in page(client, f"/curate/history/?task={SLUG}")
