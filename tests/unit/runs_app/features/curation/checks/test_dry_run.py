"""Dry runs: the kernels that come with a draft's version, tried before anybody competes on it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from gpu_runner.data.event import EventKind
from runs_app.core.errors import NotAllowed, QuotaExceeded, SubmissionError
from runs_app.features.curation.drafts.services import take_over
from runs_app.models import Submission
from runs_app.submitting.services import cancel
from tasks_app.models import AuditEntry
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import draft_of, signed_in, tried, version_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


@pytest.fixture
def ada() -> User:
    """Somebody who writes a task."""
    return make.make_user(username="ada")


def test_a_dry_run_enters_the_kernels_for_the_device_as_private_work(ada: User) -> None:
    draft = draft_of(ada, count=2)
    evaluations = tried(draft, ada, mode="ranked")
    assert [(each.mode, each.background) for each in evaluations] == [("ranked", False)] * 2
    submissions = [each.submission for each in evaluations]
    assert all(row.private and row.author == ada and row.language == "cpp" for row in submissions)
    assert {row.agent.user for row in submissions} == {ada}
    entry = AuditEntry.objects.get(kind=AuditEntry.Kind.TRIED)
    assert (entry.actor, entry.draft, entry.version) == (ada, draft, evaluations[0].task_version)
    assert entry.details == {"device": "cpu", "mode": "ranked", "kernels": 2}


def test_what_is_under_way_is_not_doubled_and_a_later_try_is_a_rerun(ada: User) -> None:
    draft = draft_of(ada)
    [first] = tried(draft, ada)
    assert tried(draft, ada) == []
    assert AuditEntry.objects.filter(kind=AuditEntry.Kind.TRIED).count() == 1
    [other_mode] = tried(draft, ada, mode="test")
    cancel(evaluation=first, user=ada, now=make.NOW)
    [again] = tried(draft, ada)
    assert {first.submission, other_mode.submission, again.submission} == {first.submission}
    assert first.submission.origin == "dry_run"


def test_an_ordinary_user_is_held_to_the_quota_whole_or_not_at_all(
    ada: User, settings: Any
) -> None:
    settings.MAX_WAITING_PER_USER = 2
    draft = draft_of(ada, count=3)
    with pytest.raises(QuotaExceeded):
        tried(draft, ada)
    assert (Submission.objects.count(), AuditEntry.objects.filter(kind="tried").count()) == (0, 0)
    assert len(tried(draft, make.make_admin())) == 3


def test_only_who_works_on_a_draft_tries_its_version(ada: User) -> None:
    draft = draft_of(ada)
    version_of(draft)
    with pytest.raises(NotAllowed):
        tried(draft, make.make_user())
    take_over(draft=draft, user=make.make_admin(), now=make.NOW)
    with pytest.raises(NotAllowed):
        tried(draft, ada)
    assert Submission.objects.count() == 0


def test_what_cannot_be_tried_is_refused_by_field(ada: User) -> None:
    for field, count, changes in (
        ("mode", 1, {"mode": "audit"}),
        ("mode", 1, {"mode": "profile"}),
        ("device", 0, {}),
    ):
        with pytest.raises(SubmissionError) as caught:
            tried(draft_of(ada, count=count), ada, **changes)
        assert caught.value.field == field


def test_a_dry_run_is_seen_by_its_author_alone(ada: User) -> None:
    browser, other = signed_in(ada), signed_in(make.make_user())
    [evaluation] = tried(draft_of(ada), ada, mode="ranked")
    make.send(evaluation, EventKind.STARTED, {"runner": "nobody", "at": 0.0}, seq=1)
    address = evaluation.submission.get_absolute_url()
    page = browser.get(address).content.decode()
    assert "not public" in page
    assert "/tasks/wave/" not in page
    assert "draft of wave" in page
    assert "wave" in browser.get("/queue/").content.decode()
    assert other.get(address).status_code == 404
    assert other.get(f"/api/v1/submissions/{evaluation.submission_id}").status_code == 404
    agent = evaluation.submission.agent.get_absolute_url()
    pages = ("/", agent, "/leaderboard/", "/queue/", "/tasks/", "/api/v1/queue", "/api/v1/tasks")
    for page in pages:
        assert "wave" not in other.get(page).content.decode(), page
    for page in ("/", agent, "/leaderboard/", "/tasks/"):
        assert "wave" not in browser.get(page).content.decode(), page
