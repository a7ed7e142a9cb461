"""The pages on which admins curate tasks, and that nobody else comes in."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs_app.core.messaging import orders
from runs_app.features.curation.decisions.services import label, mark_contaminated, retire
from runs_app.models import TaskCheck
from tasks_app.models import AuditEntry, Draft, Task, TaskVersion
from tasks_app.publishing.audit_log import add_entry
from tasks_app.publishing.services import store_version
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import prove

pytestmark = pytest.mark.django_db

PAGES = ("/curate/", "/curate/history/", "/tasks/scale/curate/")


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


def shown(client: Client, address: str) -> set[str]:
    """Names in the table of the page at this address."""
    page = client.get(address).context["page"]
    return {row.task.slug for row in page}


def test_nobody_but_admins_comes_in(client: Client) -> None:
    make.make_task_version()
    asked = [(address, client.get) for address in PAGES]
    asked += [(address, client.post) for address in ("/curate/bulk/", "/curate/check/")]
    for address, ask in asked:
        client.logout()
        answer = ask(address)
        assert (answer.status_code, "next=" in answer.headers["Location"]) == (302, True)
        client.force_login(make.make_user())
        assert ask(address).status_code == 403
    form = {"action": "retire", "reason": "x"}
    assert client.post("/tasks/scale/curate/", form).status_code == 403
    assert (Task.objects.get().state, AuditEntry.objects.count()) == ("published", 0)


def test_what_waits_comes_first_with_links(client: Client, admin: User) -> None:
    assert "Nothing is waiting" in client.get("/curate/").content.decode()
    author = make.make_user()
    for name in ("bare", "failing", "drafted"):
        task, version, _ = store_version(make.make_task(name=name), make.NOW, state="review")
        if name != "drafted":
            Task.objects.filter(pk=task.pk).update(current_version=version)
        if name == "failing":
            prove(version, passed=False, survivors=["x"])
    sent = make_draft(author=author, name="sent", state="review", task=task, version=version)
    mine = make_draft(author=admin, name="mine")
    theirs = make_draft(author=author, name="theirs")
    text = client.get("/curate/").content.decode()
    for words in (
        "<strong>1</strong> draft in review",
        "<strong>1</strong> open draft of others",
        "<strong>2</strong> tasks in review without",
        "<strong>1</strong> task in review that",
        sent.get_absolute_url(),
        theirs.get_absolute_url(),
    ):
        assert words in text
    assert mine.get_absolute_url() not in text
    assert shown(client, "/curate/?state=review&soundness=none") == {"bare", "drafted"}
    assert shown(client, "/curate/?state=review&soundness=failed") == {"failing"}


def test_filters_of_the_table_live_in_the_address(client: Client, admin: User) -> None:
    first, second, third = tasks("one", "two", "three")
    fields = {"user": admin, "now": make.NOW}
    label(task=first, tags=["gemm"], difficulty="hard", **fields)
    mark_contaminated(task=second, reason="seen", **fields)
    retire(task=third, reason="old", **fields)
    for query, names in (
        ("", {"one", "two", "three"}),
        ("?tag=gemm", {"one"}),
        ("?difficulty=hard", {"one"}),
        ("?difficulty=none", {"two", "three"}),
        ("?contaminated=yes", {"two"}),
        ("?state=retired", {"three"}),
        ("?q=thr", {"three"}),
        ("?q=scale+vector&state=published&scenario=algebra", {"one", "two"}),
        ("?soundness=passed", set()),
    ):
        assert shown(client, f"/curate/{query}") == names, query
    fragment = client.get("/curate/?tag=gemm", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in fragment
    assert 'value="/curate/?tag=gemm"' in fragment
    assert "No task matches" in client.get("/curate/?q=nothing").content.decode()
    table = client.get("/curate/?select=all").content.decode().partition("</main>")[0]
    assert table.count(" checked") == 3


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


def test_a_bulk_form_that_is_wrong_comes_back_filled(client: Client, admin: User) -> None:
    tasks("a", "b")
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"task": []}, "select at least"),
        ({"action": ""}, "choose an action"),
        ({"reason": " "}, "say why"),
        ({"action": "add-tag", "tag": "a b"}, "must be 1"),
    )
    for changes, words in cases:
        form = {"task": ["a"], "action": "retire", "reason": "kept", "tag": "kept-tag"} | changes
        answer = client.post("/curate/bulk/", form | {"confirm": "1"})
        text = answer.content.decode()
        assert (answer.status_code, words in text) == (422, True)
        assert ('value="a" id="t-a" checked' in text) is bool(form["task"])
        assert f'value="{form["tag"]}"' in text
        assert 'value="b" id="t-b" checked' not in text
    assert AuditEntry.objects.count() == 0


def test_many_tasks_are_checked(
    client: Client, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "enqueue", lambda *args, **kwargs: True)
    rows = tasks("a", "b", "c")
    Task.objects.filter(slug="c").update(current_version=None)
    make.make_cpu()
    form = {"task": ["a", "b", "c"], "device": "cpu", "back": "/curate/?state=published"}
    for wrong in ({"device": "abacus"}, {"task": []}):
        answer = client.post("/curate/check/", form | wrong, follow=True)
        assert "No check" in answer.content.decode()
    assert TaskCheck.objects.count() == 0
    answer = client.post("/curate/check/", form, follow=True)
    assert answer.redirect_chain == [("/curate/?state=published", 302)]
    assert "Left out 1: c: has no version" in answer.content.decode()
    versions = {check.version for check in TaskCheck.objects.all()}
    assert versions == {rows[0].current_version, rows[1].current_version}


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
    for words in ("Restore", "dull", "difficulty: from none to easy", "in a blog"):
        assert words in text
    assert post(action="restore", reason="not dull").state == "published"
    assert [entry.kind for entry in AuditEntry.objects.order_by("pk")] == [
        "labelled", "contaminated", "cleared", "retired", "restored",
    ]  # fmt: skip


def test_a_wrong_form_says_why_and_comes_back_filled(client: Client, admin: User) -> None:
    make.make_task_version()
    store_version(make.make_task(title="Tried"), make.NOW)
    public = {"action": "make-public", "reason": "newer is so"}
    for form, words, kept in (
        ({"action": "label", "tags": "ok un_der", "difficulty": "hard"}, "un_der", "ok un_der"),
        ({"action": "retire", "reason": "  "}, "say why", ""),
        ({"action": "restore", "reason": "mine"}, "is published, not retired", ""),
        (public | {"version": "9"}, "choose a version", ""),
        (public | {"version": "²"}, "choose a version", ""),
        (public | {"version": "2"}, "no soundness", "newer"),
        ({"action": "burn"}, "choose an action", ""),
    ):
        answer = client.post("/tasks/scale/curate/", form)
        text = answer.content.decode()
        assert (answer.status_code, words in text, kept in text) == (422, True, True), form
    task = Task.objects.get()
    assert (task.state, task.tags, task.title) == ("published", [], "Scale a vector")
    assert AuditEntry.objects.count() == 0


def test_the_page_of_a_task_lists_versions_that_were_never_public(
    client: Client, admin: User
) -> None:
    make.make_task_version()
    task, stored, _ = store_version(make.make_task(title="Tried"), make.NOW)
    draft = make_draft(author=admin, task=task, name="scale", state="review", version=stored)
    text = client.get("/tasks/scale/curate/").content.decode()
    assert "in review, made" in text
    assert draft.get_absolute_url() in text
    assert 'name="version" value="2"' not in text
    Draft.objects.update(state="closed")
    text = client.get("/tasks/scale/curate/").content.decode()
    assert "never public, made" in text
    assert 'name="version" value="2"' in text
    assert client.get("/tasks/unknown/curate/").status_code == 404


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


def test_labels_filter_the_list_and_the_api(client: Client) -> None:
    first, second, _ = tasks("one", "two", "three")
    fields = {"user": make.make_admin(), "now": make.NOW}
    assert "Difficulty" not in client.get("/tasks/").content.decode()
    label(task=first, tags=["gemm", "fused"], difficulty="hard", **fields)
    label(task=second, tags=["fused"], difficulty="easy", **fields)
    mark_contaminated(task=second, reason="in a blog", **fields)
    for query, names in (
        ("tag=fused", ["one", "two"]),
        ("tag=fused&difficulty=easy", ["two"]),
        ("difficulty=hard", ["one"]),
        ("q=thr", ["three"]),
    ):
        rows = client.get(f"/tasks/?{query}").context["rows"]
        assert [row.task.slug for row in rows] == names
        answer = client.get(f"/api/v1/tasks?{query}").json()
        assert [task["name"] for task in answer] == names
    text = client.get("/tasks/").content.decode()
    assert text.index('value="easy"') < text.index('value="hard"')
    assert "contaminated" in text
    assert "No task matches" in client.get("/tasks/?tag=unknown").content.decode()
    shown = client.get("/api/v1/tasks?tag=gemm").json()[0]
    assert (shown["tags"], shown["difficulty"]) == (["fused", "gemm"], "hard")


def test_the_api_names_a_filter_that_no_task_has(client: Client) -> None:
    tasks("one")
    for field in ("tag", "difficulty", "scenario", "abi", "direction", "dtype"):
        answer = client.get("/api/v1/tasks", {field: "nonsense"})
        assert (answer.status_code, answer.json()["field"]) == (422, field)
        assert "nonsense" in answer.json()["reason"]
