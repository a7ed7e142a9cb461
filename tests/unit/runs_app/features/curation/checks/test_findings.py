"""A draft is checked and its kernels are tried: what is stored, and what its page shows."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gpu_runner.data.event import EventKind
from gpu_runner.data.queue import Urgency
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Language, Verdict
from runs_app.core.checks.services import request_check
from runs_app.core.errors import NotAllowed, QuotaExceeded, SubmissionError
from runs_app.features.curation.checks.dry_run import try_solutions
from runs_app.features.curation.drafts.services import edit_draft, take_over
from runs_app.models import Device, Evaluation, Status, Submission, TaskCheck
from runs_app.submitting.services import cancel
from tasks_app.models import AuditEntry, Draft, Soundness, TaskVersion
from tests import factories as make
from tests.unit.runs_app.features.curation.drafted import (
    draft_of,
    finish,
    prove,
    shown,
    signed_in,
    tried,
    version_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

HTMX = {"HX-Request": "true"}
POLL = {"HX-Request": "true", "HX-Target": "findings-results"}
REPORT: dict[str, Any] = {
    "filters": [
        {"name": "output range", "direction": "forward", "workload": "n256", "value": 0.97,
         "limit": "at most 0.1", "passed": False, "text": "zeros would pass"},
        {"name": "work", "direction": "forward", "value": 1.0, "limit": "about 1", "passed": True},
    ],
    "mutants": [
        {"name": "zeros", "direction": "forward", "workload": "n256", "scaled": 0.4,
         "state": "survived"},
        {"name": "half", "direction": "forward", "workload": make.HIDDEN_WORKLOAD, "scaled": 40.0,
         "state": "failed"},
    ],
    "honest": [
        {"name": "reference", "direction": "forward", "workload": "n256", "scaled": 0.2},
    ],
}  # fmt: skip


def unsound(version: TaskVersion) -> Soundness:
    """A report that speaks against a version."""
    return prove(
        version, passed=False, mutants=2, survivors=["forward: zeros"],
        flagged=["forward: output range"], document=REPORT,
    )  # fmt: skip


def sound() -> dict[str, Any]:
    """What a report says that passes."""
    mutants = [entry for entry in REPORT["mutants"] if entry["state"] == "failed"]
    filters = [entry for entry in REPORT["filters"] if entry["passed"]]
    document = {**REPORT, "mutants": mutants, "filters": filters}
    return {"mutants": 1, "filters": 1, "document": document}


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


def test_kernels_that_were_pushed_to_a_draft_are_listed(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    browser.post(f"/drafts/{draft.pk}/check/", {"device": "cpu"})
    version = TaskVersion.objects.get()
    pushed = Solution(source="forward = min", language=Language.PYTHON)
    try_solutions([pushed], version, Device.objects.get(slug="cpu"), ada, make.NOW)
    page = browser.get(f"/drafts/{draft.pk}/").content.decode()
    assert "pushed kernel, Python</a>" in page


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


def test_a_check_waits_for_people_and_for_no_run(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    make.make_evaluation(now=make.later(-9))
    make.give_to_run(make.make_submission(now=make.later(-9)))
    check_of(draft, ada)
    assert "1 before it in the queue" in fragment(browser, draft)


def test_the_page_follows_a_check_from_before_it_to_its_cancellation(
    browser: Client, ada: User
) -> None:
    draft = draft_of(ada)
    page = fragment(browser, draft)
    assert "no runner for cpu has ever reported" in page
    assert "hx-get" not in page
    check = check_of(draft, ada)
    page = fragment(browser, draft)
    assert 'hx-trigger="every 2s"' in page
    assert "The check on CPU waits." in page
    stage = f"mutants on {make.HIDDEN_WORKLOAD}"
    TaskCheck.objects.update(status="RUNNING", stage=stage, started_at=make.NOW)
    first = fragment(browser, draft, **POLL)
    assert stage in first  # she wrote it
    assert "hx-swap-oob" in first, "the status is said again only when it changed"
    said = first.split("?said=")[1].split('"')[0]
    address = f"/drafts/{draft.pk}/trials/?said={said}"
    assert "hx-swap-oob" not in browser.get(address, headers=POLL).content.decode()
    cancel = f"/checks/{check.pk}/cancel/"
    assert browser.post(cancel, {"draft": "?"}).status_code == 404
    answer = browser.post(cancel, {"draft": draft.pk}, headers=HTMX)
    assert "was canceled" in answer.content.decode()
    page = browser.get(address, headers=POLL).content.decode()
    assert ("hx-swap-oob" in page, "hx-trigger" in page) == (True, False)
    log = shown(browser, draft).partition("draft-log")[2]
    assert "<strong>Canceled a check</strong> by ada" in log
    assert browser.post(cancel, {"draft": draft.pk}, headers=HTMX).status_code == 422


def test_a_report_or_its_absence_says_what_and_by_how_much(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    check_of(draft, ada, status="FINISHED", reason="the reference raised", finished_at=make.NOW)
    page = fragment(browser, draft)
    assert "No report" in page
    assert "the reference raised" in page
    unsound(version_of(draft))
    page = fragment(browser, draft)
    assert "1 of 2 wrong kernels pass (zeros)" in page
    assert "zeros would pass" in page
    assert "For earlier files" not in page
    assert make.HIDDEN_WORKLOAD in page  # in the whole report: the draft is hers


def test_a_sound_report_of_earlier_files_is_said_to_be_so(browser: Client, ada: User) -> None:
    draft = draft_of(ada)
    check = check_of(draft, ada, status="FINISHED", passed=True, finished_at=make.NOW)
    prove(check.version, **sound())
    assert "no wrong kernel passes it" in fragment(browser, draft)
    files = {**draft.files, "notes.md": "new"}
    edit_draft(draft=draft, user=ada, files=files, revision=1, now=make.NOW)
    page = fragment(browser, draft)
    assert "For earlier files" in page


def test_dry_runs_say_what_came_of_each_kernel(browser: Client, ada: User) -> None:
    draft = draft_of(ada, count=2)
    right, wrong = tried(draft, ada)
    for evaluation, verdict in ((right, Verdict.CORRECT), (wrong, Verdict.COMPILE_ERROR)):
        finish(evaluation, verdict)
    page = fragment(browser, draft)
    assert page.index("kernels/k1.cpp") < page.index("kernels/k0.cpp")
    assert "1.50×" in page
    assert "Compile error" in page
    assert f"/submissions/{right.submission_id}/" in page
    other = draft_of(ada, name="tide")
    tried(other, make.make_admin(username="root"))
    assert "tried by root" not in fragment(browser, other), "an admin's own are the admin's"


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
        unsound(version_of(draft))
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
