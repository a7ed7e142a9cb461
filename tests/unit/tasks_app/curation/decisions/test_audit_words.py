"""What was done to a task and its drafts, in the words of the pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tasks_app.curation.decisions.audit_words import AuditLine, audit_lines
from tasks_app.curation.drafts.services import copy_version, edit_draft
from tasks_app.models import AuditEntry, Draft
from tasks_app.publishing.audit_log import add_entry
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge(client: Client) -> User:
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


def entry(kind: AuditEntry.Kind, details: dict[str, Any]) -> AuditLine:
    return AuditLine(entry=AuditEntry(kind=kind, details=details), since=make.NOW)


def saved(draft: Draft, user: User, path: str) -> None:
    files = draft.files | {path: f"# revision {draft.revision}\n"}
    fields = {"files": files, "revision": draft.revision, "now": make.NOW}
    edit_draft(draft=draft, user=user, **fields)
    draft.refresh_from_db()


def test_both_pages_say_savings_as_one_and_a_next_version_as_what_it_is(
    client: Client, judge: User
) -> None:
    version = make.make_task_version()
    draft = copy_version(version=version, user=judge, now=make.NOW)
    for path in ("a.py", "b.py", "a.py"):
        saved(draft, judge, path)
    for address in ("/tasks/scale/curate/", draft.get_absolute_url()):
        text = client.get(address).content.decode()
        log = text[text.index("What was done") :]
        assert log.count("Edited") == 1, address
        for words in ("Edited, 3 times", "a.py, b.py", "Began a next version", "from version 1"):
            assert words in log, (address, words)
        assert "public: 1" not in log
        assert "Uploaded" not in log
    whole = client.get("/curate/history/").content.decode()
    assert whole.count('<th scope="row">Edited</th>') == 3


def test_savings_of_two_drafts_or_people_are_not_one(judge: User) -> None:
    other = make.make_admin()
    version = make.make_task_version()
    drafts = [copy_version(version=version, user=judge, now=make.NOW) for _ in range(2)]
    for draft in drafts:
        saved(draft, judge, "a.py")
        saved(draft, judge, "b.py")
    for user in (judge, other):
        add_entry(AuditEntry.Kind.EDITED, now=make.NOW, actor=user, draft=drafts[1])
    counts = [
        each.count
        for each in audit_lines(AuditEntry.objects.filter(kind="edited"), with_files=True)
    ]
    assert counts == [1, 3, 2]


@pytest.mark.parametrize(
    ("kind", "details", "words"),
    [
        (AuditEntry.Kind.UPLOADED, {}, ""),
        (AuditEntry.Kind.UPLOADED, {"public": 3}, "version 3 was public then"),
        (AuditEntry.Kind.UPLOADED, {"public": 3, "version": 2}, "from version 2"),
        (AuditEntry.Kind.CHECKED, {"device": "cpu", "check": "8d0f"}, "on cpu"),
        (AuditEntry.Kind.CANCELLED, {"device": "cpu", "check": "8d0f"}, "on cpu"),
        (AuditEntry.Kind.LOADED, {}, ""),
        (AuditEntry.Kind.LOADED, {"reports": ["cpu"]}, "with 1 soundness report from cpu"),
        (AuditEntry.Kind.LOADED, {"reports": ["a", "b"]}, "with 2 soundness reports from a, b"),
        (AuditEntry.Kind.TRIED, {"device": "cpu", "mode": "test", "kernels": 1}, "1 kernel on cpu"),
        (AuditEntry.Kind.JUDGED, {"language model": "judge"}, "judge"),
        (AuditEntry.Kind.CHANGED_VERSION, {"from": 1, "to": 2}, "instead of version 1"),
        (AuditEntry.Kind.PUBLISHED, {"from": None, "to": 2}, ""),
        (AuditEntry.Kind.RETIRED, {"from": "published"}, "it was published"),
        (AuditEntry.Kind.RESTORED, {"to": "review"}, "it is in review"),
        (AuditEntry.Kind.CLEARED, {"was": "seen"}, "it had been marked because: seen"),
        (
            AuditEntry.Kind.LABELLED,
            {"tags": {"from": [], "to": ["a", "b"]}, "difficulty": {"from": "easy", "to": ""}},
            "difficulty: from easy to none; tags: from none to a, b",
        ),
        (AuditEntry.Kind.REEVALUATED, {"evaluations": 2, "from": 1, "to": 2}, "2 evaluations"),
        (AuditEntry.Kind.REEVALUATED, {"cancelled": 2, "of": 7}, ""),
        (AuditEntry.Kind.STEERED, {"wanted": "from work to drain"}, "wanted: from work to drain"),
        (AuditEntry.Kind.SWITCHED, {"change": "reopened"}, "change: reopened"),
        (
            AuditEntry.Kind.QUOTA,
            {"per_day": 9, "waiting": "the site's"},
            "per day: 9; waiting: the site's",
        ),
        (AuditEntry.Kind.EDITED, {"revision": 2, "files": ["a.py"]}, ""),
    ],
)
def test_details_are_said_without_their_keys(
    kind: AuditEntry.Kind, details: dict[str, Any], words: str
) -> None:
    assert entry(kind, details).details == words
