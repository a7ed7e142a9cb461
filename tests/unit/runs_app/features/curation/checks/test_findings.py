"""A draft is checked and its kernels are tried: what is stored, and what its page shows."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpu_runner.data.event import EventKind
from gpu_runner.data.queue import Urgency
from runs_app.core.checks.services import request_check
from runs_app.core.errors import NotAllowed, QuotaExceeded, SubmissionError
from runs_app.features.curation.drafts.services import take_over
from runs_app.models import Evaluation, Status, Submission, TaskCheck
from runs_app.submitting.services import cancel
from tasks_app.models import AuditEntry, Draft, TaskVersion
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import (
    draft_of,
    prove,
    signed_in,
    tried,
    version_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

HTMX = {"HX-Request": "true"}
POLL = {"HX-Request": "true", "HX-Target": "findings-results"}


def check_of(draft: Draft, user: User, **changes: Any) -> TaskCheck:
    """A check of a draft's files on the CPU, with changes to its row."""
    version = version_of(draft)
    check = request_check(version=version, device=make.make_cpu(), user=user, now=make.NOW)
    TaskCheck.objects.filter(pk=check.pk).update(**changes)
    check.refresh_from_db()
    return check


def fragment(client: Client, draft: Draft, **headers: str) -> str:
    """Text of the part of the draft's page."""
    answer = client.get(f"/drafts/{draft.pk}/trials/", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def ada() -> User:
    """Somebody who writes a task."""
    return make.make_user(username="ada")


@pytest.fixture
def browser(client: Client, ada: User) -> Client:
    """Her browser."""
    client.force_login(ada)
    return client


def test_the_author_may_have_a_draft_checked_and_tried(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    answer = browser.post(f"/drafts/{draft.pk}/check/", {"device": "cpu"})
    assert (answer.status_code, answer["Location"]) == (302, f"/drafts/{draft.pk}/#findings")
    check = TaskCheck.objects.get()
    assert (check.asked_by, check.version.task.slug) == (ada, "wave")
    assert AuditEntry.objects.get(kind=AuditEntry.Kind.CHECKED, draft=draft).actor == ada
    form = {"device": "cpu", "mode": "test"}
    answer = browser.post(f"/drafts/{draft.pk}/try/", form, headers=HTMX)
    assert answer.status_code == 200
    assert "kernels/k0.cpp" in answer.content.decode()
    assert Evaluation.objects.get().mode == "test"


def test_a_page_says_what_a_check_waits_for(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    check = check_of(draft, ada)
    address = f"/drafts/{draft.pk}/"
    pages = (
        (browser, address),
        (browser, f"{address}trials/"),
        (signed_in(make.make_admin()), "/curate/"),
    )
    for waits_for in ("a runner that takes jobs on CPU", "its turn on CPU"):
        for client, path in pages:
            assert f"waiting for {waits_for}" in client.get(path).content.decode(), path
        make.make_runner(seen_at=timezone.now())
    TaskCheck.objects.filter(pk=check.pk).update(status=Status.RUNNING)
    assert "check runs on CPU. Wait until it ends" in browser.get(address).content.decode()


def test_a_fault_is_said_and_nothing_is_stored(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    Draft.objects.filter(pk=draft.pk).update(files={**draft.files, "task.toml": "name = 1"})
    answer = browser.post(f"/drafts/{draft.pk}/check/", {"device": "cpu"}, headers=HTMX)
    assert answer.status_code == 422
    assert "Not checked" in answer.content.decode()
    browser.post(f"/drafts/{draft.pk}/check/", {"device": "cpu"})
    answer = browser.post(
        f"/drafts/{draft.pk}/try/", {"device": "abacus", "mode": "test"}, headers=HTMX
    )
    page = answer.content.decode()
    assert 'id="findings-device-error"' in page
    assert '<option value="test" selected>' in page
    assert (TaskVersion.objects.count(), TaskCheck.objects.count()) == (0, 0)


def test_a_draft_that_has_ended_is_left_alone(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    version_of(draft)
    admin = signed_in(make.make_admin())
    for state, expected in (("published", 200), ("closed", 422)):
        Draft.objects.filter(pk=draft.pk).update(state=state)
        for action in ("check", "try"):
            address = f"/drafts/{draft.pk}/{action}/"
            assert browser.post(address, {"device": "cpu"}, headers=HTMX).status_code == 422
            assert admin.post(address, {"device": "cpu"}, headers=HTMX).status_code == expected
        assert 'id="findings-check"' not in fragment(browser, draft)


def test_strangers_and_who_lost_a_draft_find_nothing(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    check = check_of(draft, ada)
    take_over(draft=draft, user=make.make_admin(), now=make.NOW)
    other = signed_in(make.make_user())
    lost = browser.get(f"/drafts/{draft.pk}/trials/")  # a page that still asks learns why
    assert (lost.status_code, "taken this draft over" in lost.content.decode()) == (286, True)
    assert other.get(f"/drafts/{draft.pk}/trials/").status_code == 404
    for client in (browser, other):
        for action in ("check", "try"):
            address = f"/drafts/{draft.pk}/{action}/"
            assert client.post(address, {"device": "cpu"}).status_code == 404
        cancel = client.post(f"/checks/{check.pk}/cancel/", {"draft": draft.pk})
        assert cancel.status_code == 404
    assert Client().get(f"/drafts/{draft.pk}/trials/").status_code == 302
    for headers, part in ((POLL, "findings-results"), (HTMX, "findings")):  # told in place
        answer = Client().get(f"/drafts/{draft.pk}/trials/", headers=headers)
        assert answer.status_code == 286
        assert f'id="{part}"' in answer.content.decode()
        assert "wave" not in answer.content.decode()
    check.refresh_from_db()
    assert check.status == Status.QUEUED


def test_the_number_of_queries_does_not_grow_with_the_kernels(
    browser: Client, ada: User, django_assert_max_num_queries: Any
) -> None:
    make.make_runner()
    drafts = {count: draft_of(ada, count=count, name=f"wave{count}") for count in (1, 10)}
    admin = make.make_admin()
    client = signed_in(admin)
    counts = []
    for draft in drafts.values():
        tried(draft, admin)
        check_of(draft, admin)
        prove(version_of(draft), passed=False, survivors=["forward: zeros"])
        with django_assert_max_num_queries(45) as queries:
            fragment(client, draft)
        assert isinstance(queries, CaptureQueriesContext)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    with django_assert_max_num_queries(25):
        fragment(client, drafts[10], **POLL)


def test_a_dry_run_enters_the_kernels_for_the_device_as_private_work(ada: User) -> None:
    draft = draft_of(ada, count=2)
    evaluations = tried(draft, ada, mode="ranked")
    assert [(each.mode, each.urgency) for each in evaluations] == [("ranked", Urgency.PEOPLE)] * 2
    submissions = [each.submission for each in evaluations]
    assert all(row.private and row.author == ada and row.language == "cpp" for row in submissions)
    assert {row.agent.user for row in submissions} == {ada}
    entry = AuditEntry.objects.get(kind=AuditEntry.Kind.TRIED)
    assert (entry.actor, entry.draft, entry.version) == (ada, draft, evaluations[0].task_version)
    assert entry.details == {"device": "CPU", "mode": "ranked", "kernels": 2}


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


def test_the_choice_of_a_device_tells_all_that_waits(ada: User) -> None:
    """Also what waits behind a check: the queue's page tells of it, too."""
    make.make_runner(seen_at=timezone.now())
    for number in range(3):
        row = make.make_evaluation(source=f"// {number}\n")
        background = {"queue_place": Urgency.BACKGROUND.place}
        Evaluation.objects.filter(pk=row.pk).update(**background)
    done = make.make_finished_evaluation(source="// done\n")
    moments = {"created_at": timezone.now(), "queued_at": make.NOW, "started_at": make.NOW}
    Evaluation.objects.filter(pk=done.pk).update(**moments)
    page = signed_in(ada).get(draft_of(ada).get_absolute_url()).content.decode()
    words = " ".join(page.split())
    assert "3 waiting, none ahead of yours" in words
    assert "median wait in the last day: under 1 s" in words


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
