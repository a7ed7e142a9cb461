"""The pages on which admins curate tasks, and that nobody else comes in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs_app.features.curation.decisions.services import retire
from runs_app.models import Status, TaskCheck
from tasks_app.models import AuditEntry, Draft, Task, TaskVersion
from tasks_app.publishing.audit_log import add_entry
from tasks_app.publishing.services import store_version
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import prove

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> User:
    """Who is signed in."""
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


def tasks(*names: str) -> list[Task]:
    return [make.make_task_version(name=name).task for name in names]


def make_draft(**overrides: Any) -> Draft:
    fields = {"name": "proposed", "files": {}, "created_at": make.NOW, "changed_at": make.NOW}
    return Draft.objects.create(**{**fields, **overrides})


@pytest.mark.parametrize("address", ["/curate/", "/curate/history/"])
def test_many_rows_cost_no_more_queries_and_no_documents(
    client: Client, admin: User, address: str
) -> None:
    def fill(*names: str) -> None:
        author = make.make_user()
        for task in tasks(*names):
            version = task.current_version
            fields = {"task": task, "version": version, "author": author, "name": task.slug}
            draft = make_draft(state="review", **fields)
            make_draft(**fields)
            add_entry(
                AuditEntry.Kind.SENT, now=make.NOW, version=version, draft=draft, actor=author
            )

    def queries() -> list[str]:
        with CaptureQueriesContext(connection) as caught:
            client.get(address)
        return [query["sql"] for query in caught.captured_queries]

    fill("a")
    few = queries()
    fill(*(f"t{i}" for i in range(9)))
    many = queries()
    assert len(many) == len(few)
    assert not [sql for sql in many if '."document"' in sql or '."files"' in sql]


def test_a_bulk_decision_is_shown_before_it_is_made(client: Client, admin: User) -> None:
    rows = tasks("a", "b", "c")
    retire(task=rows[1], user=admin, reason="old", now=make.NOW)
    form = {
        "task": ["a", "b"], "action": "retire", "reason": "a <b>series</b>",
        "back": "/curate/?q=s",
    }  # fmt: skip
    answer = client.post("/curate/bulk/", form)
    assert [task.slug for task in answer.context["changing"]] == ["a"]
    staying = [(each.task.slug, each.refusal) for each in answer.context["staying"]]
    assert staying == [("b", "is retired")]
    assert "a &lt;b&gt;series" in answer.content.decode()
    assert Task.objects.filter(state="retired").count() == 1
    answer = client.post("/curate/bulk/", form | {"confirm": "1"}, follow=True)
    assert answer.redirect_chain == [("/curate/?q=s", 302)]
    assert "b is retired" in answer.content.decode()
    assert set(Task.objects.filter(state="retired").values_list("slug", flat=True)) == {"a", "b"}
    entry = AuditEntry.objects.all()[0]
    assert (entry.name, entry.actor, entry.reason) == ("a", admin, "a <b>series</b>")


def test_many_proven_tasks_are_published_at_once(client: Client, admin: User) -> None:
    for name in ("bare", "failing", "sound"):
        task, version, _ = store_version(make.make_task(name=name), make.NOW, state="review")
        Task.objects.filter(pk=task.pk).update(current_version=version)
        if name != "bare":
            passed = name == "sound"
            prove(version, passed=passed, survivors=[] if passed else ["forward: zeros"])
    tasks("public")
    names = ["bare", "failing", "public", "sound"]
    form = {"task": names, "action": "publish", "reason": "checked here", "confirm": "1"}
    text = client.post("/curate/bulk/", form, follow=True).content.decode()
    for words in ("no soundness report", "1 of 3 wrong kernels pass (zeros)", "is public"):
        assert words in text
    states = dict(Task.objects.values_list("slug", "state"))
    assert states == dict.fromkeys(names, "published") | {"bare": "review", "failing": "review"}
    entry = AuditEntry.objects.filter(kind="published")[0]
    assert (entry.name, entry.actor, entry.reason) == ("sound", admin, "checked here")


def test_one_task_is_curated_on_its_page(client: Client, admin: User) -> None:
    version = make.make_task_version()
    task, address = version.task, "/tasks/scale/curate/"

    def post(**form: str) -> Task:
        answer = client.post(address, form)
        assert answer.status_code == 302, answer.content.decode()
        task.refresh_from_db()
        return task

    assert post(action="label", tags="Gemm, memory-bound", difficulty="easy").tags == [
        "gemm", "memory-bound",
    ]  # fmt: skip
    assert post(action="contaminate", reason="in a blog").contaminated == "in a blog"
    assert post(action="clear").contaminated == ""
    assert post(action="retire", reason="dull").state == "retired"
    text = client.get(address).content.decode()
    for words in ("Restore", "dull", "difficulty: set to easy", "in a blog"):
        assert words in text
    post(action="label", tags="gemm", difficulty="")
    history = client.get("/curate/history/?format=csv").content.decode()
    assert "difficulty: removed; it was easy; tags: changed from gemm" in history
    assert post(action="restore", reason="not dull").state == "published"
    assert [entry.kind for entry in AuditEntry.objects.order_by("pk")] == [
        "labelled", "contaminated", "cleared", "retired", "labelled", "restored",
    ]  # fmt: skip


def test_the_admin_changes_nothing(client: Client, admin: User) -> None:
    task = make.make_task_version().task
    for model in ("task", "taskversion", "auditentry"):
        assert client.get(f"/admin/tasks_app/{model}/").status_code == 200
        assert client.get(f"/admin/tasks_app/{model}/add/").status_code == 403
    address = f"/admin/tasks_app/task/{task.pk}"
    text = client.get(f"{address}/change/").content.decode()
    assert "View on site" in text
    assert client.post(f"{address}/change/", {"state": "retired"}).status_code == 403
    assert client.post(f"{address}/delete/", {"post": "yes"}).status_code == 403
    assert (Task.objects.get().state, TaskVersion.objects.count()) == ("published", 1)


@pytest.mark.parametrize(("again", "shown"), [(None, True), (False, False), (True, False)])
@pytest.mark.parametrize("address", ["/curate/", "/tasks/a/curate/"])
def test_a_check_that_failed_says_why_until_there_is_another(
    client: Client, admin: User, address: str, again: bool | None, shown: bool
) -> None:
    [task] = tasks("a")
    over = {"status": Status.FINISHED, "finished_at": make.NOW}
    fields = {"version": task.current_version, "device": make.make_cpu(), "asked_by": admin}
    dates = {"created_at": make.NOW, "queued_at": make.NOW}
    TaskCheck.objects.create(**fields, **over, **dates, reason="forward of n7: <it> broke")
    if again is not None:
        dates["created_at"] += timedelta(minutes=1)
        TaskCheck.objects.create(**fields, **over, **dates, passed=again)
    page = client.get(address).content.decode()
    said = "The last check on CPU failed: forward of n7: &lt;it&gt; broke"
    assert (said in page) is shown
