"""What was done to a task and its drafts, in the words of the pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tasks_app.curation.decisions.trail_words import TrailEntry, trail_entries
from tasks_app.curation.drafts.services import copy_version, edit_draft
from tasks_app.models import Act, Draft
from tasks_app.publishing.trail import note
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge(client: Client) -> User:
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


def entry(kind: Act.Kind, details: dict[str, Any]) -> TrailEntry:
    return TrailEntry(act=Act(kind=kind, details=details), since=make.NOW)


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
        trail = text[text.index("What was done") :]
        assert trail.count("Edited") == 1, address
        for words in ("Edited, 3 times", "a.py, b.py", "Began a next version", "from version 1"):
            assert words in trail, (address, words)
        assert "public: 1" not in trail
        assert "Uploaded" not in trail
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
        note(Act.Kind.EDITED, now=make.NOW, actor=user, draft=drafts[1])
    counts = [
        each.count for each in trail_entries(Act.objects.filter(kind="edited"), with_files=True)
    ]
    assert counts == [1, 3, 2]


@pytest.mark.parametrize(
    ("kind", "details", "words"),
    [
        (Act.Kind.UPLOADED, {}, ""),
        (Act.Kind.UPLOADED, {"public": 3}, "version 3 was public then"),
        (Act.Kind.UPLOADED, {"public": 3, "version": 2}, "from version 2"),
        (Act.Kind.CHECKED, {"device": "cpu", "check": "8d0f"}, "on cpu"),
        (Act.Kind.CANCELLED, {"device": "cpu", "check": "8d0f"}, "on cpu"),
        (Act.Kind.LOADED, {}, ""),
        (Act.Kind.LOADED, {"reports": ["cpu"]}, "with 1 soundness report from cpu"),
        (Act.Kind.LOADED, {"reports": ["a", "b"]}, "with 2 soundness reports from a, b"),
        (Act.Kind.TRIED, {"device": "cpu", "mode": "test", "kernels": 1}, "1 kernel on cpu"),
        (Act.Kind.JUDGED, {"language model": "judge"}, "judge"),
        (Act.Kind.CHANGED_VERSION, {"from": 1, "to": 2}, "instead of version 1"),
        (Act.Kind.PUBLISHED, {"from": None, "to": 2}, ""),
        (Act.Kind.RETIRED, {"from": "published"}, "it was published"),
        (Act.Kind.RESTORED, {"to": "review"}, "it is in review"),
        (Act.Kind.CLEARED, {"was": "seen"}, "it had been marked because: seen"),
        (
            Act.Kind.LABELLED,
            {"tags": {"from": [], "to": ["a", "b"]}, "difficulty": {"from": "easy", "to": ""}},
            "difficulty: from easy to none; tags: from none to a, b",
        ),
        (Act.Kind.REEVALUATED, {"evaluations": 2, "from": 1, "to": 2}, "2 evaluations"),
        (Act.Kind.REEVALUATED, {"cancelled": 2, "of": 7}, ""),
        (Act.Kind.EDITED, {"revision": 2, "files": ["a.py"]}, ""),
    ],
)
def test_details_are_said_without_their_keys(
    kind: Act.Kind, details: dict[str, Any], words: str
) -> None:
    assert entry(kind, details).details == words
