"""The audit log: its page, its file, and its words on the pages of tasks and drafts."""

from __future__ import annotations

import csv
import io

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs_app.features.curation.drafts.services import copy_version, edit_draft
from tasks_app.models import AuditEntry, Draft
from tasks_app.pages import audit_page
from tasks_app.pages.audit_page import audit_lines
from tasks_app.publishing.audit_log import add_entry
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge(client: Client) -> User:
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


def saved(draft: Draft, user: User, path: str) -> None:
    files = draft.files | {path: f"# revision {draft.revision}\n"}
    fields = {"files": files, "revision": draft.revision, "now": make.NOW}
    edit_draft(draft=draft, user=user, **fields)
    draft.refresh_from_db()


def test_savings_of_two_drafts_or_people_are_not_one(judge: User) -> None:
    other = make.make_admin()
    version = make.make_task_version()
    drafts = [copy_version(version=version, user=judge, now=make.NOW) for _ in range(2)]
    for draft in drafts:
        saved(draft, judge, "a.py")
        saved(draft, judge, "b.py")
    for user in (judge, other):
        add_entry(AuditEntry.Kind.EDITED, now=make.NOW, actor=user, draft=drafts[1])
    edited = AuditEntry.objects.filter(kind="edited")
    assert [each.count for each in audit_lines(edited, with_files=True)] == [1, 3, 2]


def test_the_audit_log_is_filtered_paged_and_a_file(client: Client, judge: User) -> None:
    first, second = (make.make_task_version(name=name) for name in ("a", "b"))
    retired = {"kind": AuditEntry.Kind.RETIRED, "now": make.NOW}
    add_entry(**retired, actor=judge, version=first, reason="=SUM(A1)")
    add_entry(**retired, actor=make.make_admin(username="other"), version=second, reason="x")
    add_entry(AuditEntry.Kind.LOADED, now=make.NOW, version=first)

    def entries(query: str) -> list[tuple[str, str]]:
        page = client.get(f"/curate/history/{query}").context["page"]
        return [(entry.kind, entry.name) for entry in page]

    assert entries("") == [("loaded", "a"), ("retired", "b"), ("retired", "a")]
    assert entries("?task=a") == [("loaded", "a"), ("retired", "a")]
    assert entries("?kind=retired&person=judge") == [("retired", "a")]
    assert entries("?person=-") == [("loaded", "a")]
    assert entries("?person=nobody") == []
    answer = client.get("/curate/history/?kind=retired&format=csv")
    assert answer["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [(row["task"], row["person"], row["reason"]) for row in rows] == [
        ("b", "other", "x"), ("a", "judge", "'=SUM(A1)"),
    ]  # fmt: skip
    empty = client.get("/curate/history/?task=none&format=csv").content.decode()
    assert empty == ",".join(audit_page.RECORD_FIELDS) + "\n"
