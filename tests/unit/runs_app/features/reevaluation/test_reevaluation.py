"""The best of a version are measured again: previewed, chosen, queued, compared, canceled."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.queue import Urgency
from gpu_runner.data.task import Abi
from gpu_runner.data.verdict import Direction, Verdict
from runs_app.core.errors import NotAllowed, SubmissionError, WrongState
from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.features.reevaluation.plan import plan_of
from runs_app.features.reevaluation.progress import progress_of
from runs_app.features.reevaluation.selectors import reevaluations_of
from runs_app.features.reevaluation.services import cancel_reevaluation, reevaluate
from runs_app.models import Evaluation, Submission
from runs_app.submitting.quota import quota
from runs_app.submitting.services import cancel
from tasks_app.models import AuditEntry, Task, TaskVersion
from tests import factories as make
from tests.unit.queued import Jobs
from tests.unit.runs_app.features.reevaluation.reevaluated import (
    begin,
    chosen,
    end,
    entered,
    next_version,
    planned,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def test_the_best_of_each_agent_of_the_newest_earlier_version_is_chosen() -> None:
    user = make.make_user()
    entered("slow", 1.5)
    entered("fast", 3.0, user=user)
    entered("fast", 2.0, user=user, source=f"// older\n{make.SOURCE}")
    entered("wrong", verdict=Verdict.WRONG_RESULT)
    entered("tuned", 3.0, user=user, result={"unlisted_speedups": {"best": 0.5}})
    general = entered("tuned", 1.4, user=user, source=f"// general\n{make.SOURCE}")
    version = next_version()
    choice = chosen(version)
    assert (choice.source.number, choice.target) == (1, version)
    assert [device.slug for device in choice.devices] == ["cpu"]
    plan = plan_of(choice)
    assert planned(plan) == [("fast", ""), ("slow", ""), ("tuned", "")]
    assert [each.evaluation.speedup_best for each in plan.planned] == [3.0, 1.5, 1.4]
    assert plan.planned[2].evaluation == general  # of the best score, not of the shortest time
    assert (plan.entered, plan.seen) == (3, "1-2-3")


def test_what_stands_on_no_board_is_not_measured() -> None:
    entered("good")
    entered("hidden", private=True)
    entered("wrong", verdict=Verdict.WRONG_RESULT)
    suspicion = Suspicion(check=Check.SOURCE, reason="calls dlopen", line=1)
    entered("suspicious", result={"suspicions": (suspicion,)})
    barred = entered("barred")
    Evaluation.objects.filter(pk=barred.pk).update(audited="failed")
    make.give_to_run(entered("candidate").submission)
    assert planned(plan_of(chosen(next_version()))) == [("good", "")]


def test_a_start_enters_copies_in_the_background_and_on_no_quota(jobs: Jobs) -> None:
    user = make.make_user()
    earlier = entered("fast", 3.0, user=user, language_model="gpt-5.1").submission
    used = quota(user, make.later(100)).today
    version = next_version()
    row = begin(version)
    copy = earlier.carried_to.get()
    same = ("author", "agent", "language_model", "source", "language", "digest", "private")
    assert [getattr(copy, name) for name in same] == [getattr(earlier, name) for name in same]
    assert copy.task_version == version
    evaluation = copy.evaluations.get()
    assert (evaluation.mode, evaluation.urgency) == ("ranked", Urgency.BACKGROUND)
    assert list(row.evaluations.all()) == [evaluation]
    assert quota(user, make.later(101)).today == used
    assert quota(user, make.later(101)).waiting == 0
    assert (row.source.number, row.target, row.devices) == (1, version, ["cpu"])
    entry = AuditEntry.objects.get(kind="reevaluated")
    assert (entry.version, entry.actor, entry.reason) == (version, row.asked_by, str(row))
    assert entry.details["evaluations"] == 1


def test_starting_again_queues_nothing_twice_and_a_lost_one_once_more() -> None:
    entered("fast", 3.0)
    entered("slow", 1.5)
    version = next_version()
    seen = plan_of(chosen(version)).seen
    row = begin(version)
    assert {reason for _, reason in planned(plan_of(chosen(version)))} == {"already under way"}
    for pressed_again in (seen, "1-2-0"):
        with pytest.raises(SubmissionError) as caught:
            reevaluate(
                choice=chosen(version), seen=pressed_again, user=make.make_admin(), now=make.NOW
            )
        assert caught.value.field == "seen"
    assert Reevaluation.objects.count() == 1
    fast, slow = row.evaluations.order_by("created_at")
    end(fast, 2.5)
    cancel(evaluation=slow, user=slow.submission.author, now=make.later(300))
    plan = plan_of(chosen(version))
    assert planned(plan) == [("fast", "already measured there"), ("slow", "")]
    assert plan.entered == 0
    begin(version, seconds=400)
    assert Submission.objects.filter(task_version=version).count() == 2
    assert slow.submission.evaluations.count() == 2


def test_what_was_not_seen_and_a_changed_task_start_nothing() -> None:
    entered("fast")
    version = next_version()
    choice = chosen(version)
    admin, moment = make.make_admin(), make.later(100)
    for seen in ("1-2-2", "2-2-1", ""):
        with pytest.raises(SubmissionError, match="changed to 1 evaluation on version 2"):
            reevaluate(choice=choice, seen=seen, user=admin, now=moment)
    with pytest.raises(NotAllowed):
        reevaluate(choice=choice, seen="1-2-1", user=make.make_user(), now=moment)
    next_version(description="the third version")
    with pytest.raises(WrongState):
        reevaluate(choice=choice, seen="1-2-1", user=admin, now=moment)
    assert not Submission.objects.filter(task_version=version).exists()
    assert not Reevaluation.objects.exists()
    assert not AuditEntry.objects.filter(kind="reevaluated").exists()


def test_measuring_again_makes_no_submission_and_keeps_places_until_then() -> None:
    first = entered("fast", 3.0)
    version = first.task_version
    choice = chosen(version)
    assert choice.same
    row = begin(version)
    assert Submission.objects.count() == 1
    [again] = row.evaluations.all()
    assert eligible_evaluations().get() == first
    assert planned(plan_of(chosen(version))) == [("fast", "already under way")]
    end(again, 3.3)
    [shown] = progress_of(row).rows
    assert (shown.before, shown.now) == (first, again)
    assert shown.before is not None
    assert shown.before.score == shown.now.score == pytest.approx((3.0 * 3.3) ** 0.5)
    assert (shown.change, shown.change_words) == (pytest.approx(0.1), "▲ +10 %")
    assert planned(plan_of(chosen(version))) == [("fast", "")]  # and once more, if asked


def test_what_cannot_be_carried_says_why() -> None:
    entered("fast")
    backward = next_version(abi=Abi.TORCH, signature="", directions=(Direction.BACKWARD,), work={})
    plan = plan_of(chosen(backward))
    assert planned(plan) == [("fast", "version 2 has no forward direction")]
    assert plan.left_out == [("version 2 has no forward direction", 1)]
    with pytest.raises(SubmissionError, match="there is nothing to measure"):
        begin(backward)


def test_only_what_still_waits_is_cancelled(
    jobs: Jobs, django_capture_on_commit_callbacks: Any
) -> None:
    entered("first", 3.0)
    entered("second", 2.0)
    row = begin(next_version())
    running, waiting = row.evaluations.order_by("created_at")
    make.start(running)
    admin = make.make_admin()
    with pytest.raises(NotAllowed):
        cancel_reevaluation(reevaluation=row, user=make.make_user(), now=make.later(150))
    with django_capture_on_commit_callbacks(execute=True):
        assert cancel_reevaluation(reevaluation=row, user=admin, now=make.later(150)) == 1
    assert len(jobs.dropped) == 1
    running.refresh_from_db()
    waiting.refresh_from_db()
    assert (running.status, waiting.status) == ("RUNNING", "CANCELLED")
    assert list(reevaluations_of(row.target.task)) == [row]
    with pytest.raises(WrongState):
        cancel_reevaluation(reevaluation=row, user=admin, now=make.later(160))


def page(version: TaskVersion, address: str = "") -> str:
    url = reverse("task-reevaluate", args=[version.task.slug])
    return f"{url}?{address}" if address else url


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(make.make_admin())
    return client


def test_the_page_previews_and_starts_what_was_seen(admin: Client) -> None:
    entered("fast", 3.0)
    entered("slow", 1.5)
    version = next_version()
    text = admin.get(page(version, "version=1&device=cpu")).content.decode()
    assert "Queue 2 evaluations<" in text
    assert '<input type="hidden" name="seen" value="1-2-2">' in text
    fields = {"version": "1", "device": "cpu"}
    answer = admin.post(page(version), fields | {"seen": "1-2-7"})
    assert answer.status_code == 422
    assert "plan has changed" in answer.content.decode()
    assert "Queue 2 evaluations<" in answer.content.decode()
    assert not Submission.objects.filter(task_version=version).exists()
    answer = admin.post(page(version), fields | {"seen": "1-2-2"})
    row = Reevaluation.objects.get()
    progress = reverse("reevaluation", args=[version.task.slug, row.pk])
    assert answer.headers["Location"] == progress
    assert admin.post(page(version), fields | {"seen": "1-2-2"}).status_code == 422
    assert Submission.objects.filter(task_version=version).count() == 2


def test_what_was_previewed_for_another_version_or_is_wrong_is_not_started(
    admin: Client, client: Client
) -> None:
    entered("fast")
    version = next_version()
    next_version(description="the third version")  # as many would be queued there
    fields = {"version": "1", "device": "cpu"}
    for seen in ({"seen": "1-2-1"}, {}):
        answer = admin.post(page(version), fields | seen)
        assert answer.status_code == 422
        assert "1 evaluation on version 3" in answer.content.decode()
    for field, value in (("version", "7"), ("device", "abacus")):
        address = page(version, f"{field}={value}")
        for answer in (admin.get(address), admin.post(page(version), {field: value})):
            assert answer.status_code == 422
            assert f'href="#id_{field}"' in answer.content.decode()
    client.force_login(make.make_user())
    assert client.post(page(version), {"count": "1"}).status_code == 403
    assert not Reevaluation.objects.exists()


ADDRESS = "/curate/reevaluate/"


@pytest.fixture
def form() -> dict[str, Any]:
    """One task with results on its version, one with a new version, one without results."""
    entered("fast", 3.0)
    entered("slow", 1.5)
    other = make.make_task_version(name="other")
    entered("fast", 2.0, task_version=other)
    next_version(name="other")
    make.make_task_version(name="bare")
    return {"task": ["scale", "other", "bare"], "device": "cpu", "back": "/curate/?q=s"}


def test_it_is_shown_first_and_queued_as_it_was_shown(admin: Client, form: dict[str, Any]) -> None:
    before = Evaluation.objects.count()
    answer = admin.post(ADDRESS, form)
    assert [(each.task.slug, each.plan.seen) for each in answer.context["changing"]] == [
        ("other", "1-2-1"), ("scale", "1-1-2"),
    ]  # fmt: skip
    text = answer.content.decode()
    assert "Queue 3 evaluations<" in text
    assert answer.context["estimate"].total_s == 120  # each took 40 s
    assert Evaluation.objects.count() == before
    sent = form | {"confirm": "1", "seen-scale": "1-1-2", "seen-other": "1-2-1"}
    answer = admin.post(ADDRESS, sent, follow=True)
    assert answer.redirect_chain == [("/curate/?q=s", 302)]
    assert "Left out 1: bare: has no ranked" in answer.content.decode()
    assert Evaluation.objects.count() == before + 3
    assert Submission.objects.filter(carried_from__isnull=False).count() == 1
    assert Reevaluation.objects.count() == 2
    text = admin.post(ADDRESS, sent, follow=True).content.decode()
    assert "already under way" in text
    assert Evaluation.objects.count() == before + 3


def test_what_has_changed_since_is_left_out(admin: Client, form: dict[str, Any]) -> None:
    Task.objects.filter(slug="other").update(state=Task.State.REVIEW)
    sent = form | {"confirm": "1", "seen-scale": "1-1-1", "seen-other": "1-2-1"}
    text = admin.post(ADDRESS, sent, follow=True).content.decode()
    assert "other: is not public" in text
    assert "plan has changed" in text
    assert not Reevaluation.objects.exists()


def test_wrong_forms_and_others_change_nothing(
    admin: Client, form: dict[str, Any], client: Client
) -> None:
    for wrong, words in (({"device": "abacus"}, "choose a device"), ({"task": []}, "select at")):
        text = admin.post(ADDRESS, form | wrong, follow=True).content.decode()
        assert f"Nothing was queued: {words}" in text
    for away in ("https://evil.example/", "//evil.example", "javascript:x", ""):
        answer = admin.post(ADDRESS, form | {"back": away, "device": "unknown"})
        assert answer.url == "/tasks/", away
    client.force_login(make.make_user())
    assert client.post(ADDRESS, form | {"confirm": "1"}).status_code == 403
    assert not Reevaluation.objects.exists()
