"""The best of a version are measured again: chosen, queued, compared, cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.queue import Urgency
from gpu_runner.data.task import Abi
from gpu_runner.data.verdict import Direction, Verdict
from runs_app.core.errors import NotAllowed, SubmissionError, WrongState
from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.features.reevaluation.plan import estimates_of, plan_of
from runs_app.features.reevaluation.progress import progress_of
from runs_app.features.reevaluation.selectors import reevaluations_of
from runs_app.features.reevaluation.services import cancel_reevaluation, reevaluate
from runs_app.models import Evaluation, Submission
from runs_app.submitting.quota import quota
from runs_app.submitting.services import cancel
from tasks_app.models import AuditEntry
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
    assert str(row) == "the best of each agent of version 1 on version 2, on cpu"
    entry = AuditEntry.objects.get(kind="reevaluated")
    assert (entry.version, entry.actor, entry.reason) == (version, row.asked_by, str(row))
    assert entry.details["evaluations"] == 1


def test_starting_again_queues_nothing_twice_and_a_lost_one_once_more() -> None:
    entered("fast", 3.0)
    entered("slow", 1.5)
    version = next_version()
    seen = plan_of(chosen(version)).seen
    row = begin(version)
    assert {reason for _, reason in planned(plan_of(chosen(version)))} == {"under way already"}
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
    assert planned(plan) == [("fast", "measured there already"), ("slow", "")]
    assert plan.entered == 0
    begin(version, seconds=400)
    assert Submission.objects.filter(task_version=version).count() == 2
    assert slow.submission.evaluations.count() == 2


def test_what_its_author_entered_on_the_new_version_is_not_entered_again() -> None:
    first = entered("fast")
    version = next_version()
    make.make_submission(
        user=first.submission.author,
        task_version=version,
        agent="fast",
        source=first.submission.source,
    )  # a quick evaluation, which says nothing for the board
    assert planned(plan_of(chosen(version))) == [("fast", "")]
    begin(version)
    again = Submission.objects.get(task_version=version)
    assert again.carried_from is None
    assert sorted(again.evaluations.values_list("mode", flat=True)) == ["quick", "ranked"]


def test_what_was_not_seen_and_a_changed_task_start_nothing() -> None:
    entered("fast")
    version = next_version()
    choice = chosen(version)
    admin, moment = make.make_admin(), make.later(100)
    for seen in ("1-2-2", "2-2-1", ""):
        with pytest.raises(SubmissionError, match="it would now be 1 on version 2"):
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
    assert str(row) == "the best of each agent of version 1, measured again on cpu"
    assert Submission.objects.count() == 1
    [again] = row.evaluations.all()
    assert eligible_evaluations().get() == first
    assert planned(plan_of(chosen(version))) == [("fast", "under way already")]
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
    with pytest.raises(SubmissionError, match="nothing would be measured"):
        begin(backward)


def test_the_time_comes_from_the_same_kernels_and_from_the_queue() -> None:
    version = entered("fast", 3.0).task_version
    unknown = entered("slow", 1.5)
    Evaluation.objects.filter(pk=unknown.pk).update(started_at=None)
    make.make_submission(task_version=version, mode="ranked", source="// waits\n")
    target = next_version()
    [estimate] = estimates_of(plan_of(chosen(target)), make.later(100))
    # the submission waits, and the audit of the leader, which nobody knows anything of
    assert (estimate.evaluations, estimate.ahead, estimate.total_s) == (2, 2, 120.0)
    assert "no runner for cpu" in estimate.reason
    for _ in range(2):
        make.make_runner(seen_at=make.later(100))
    [estimate] = estimates_of(plan_of(chosen(target)), make.later(100))
    assert (estimate.total_s, estimate.reason) == (60.0, "")
    Evaluation.objects.update(started_at=None)
    [estimate] = estimates_of(plan_of(chosen(target)), make.later(100))
    assert estimate.total_s is None


def test_scores_before_and_now_stand_side_by_side() -> None:
    entered("first", 3.0)
    entered("second", 2.0)
    version = next_version()
    row = begin(version)
    first, second = row.evaluations.order_by("created_at")
    assert (progress_of(row).ended, progress_of(row).counts["QUEUED"]) == (0, 2)
    end(first, 1.5)
    end(second, 2.01)
    progress = progress_of(row)
    assert (progress.ended, progress.total, progress.under_way) == (2, 2, False)
    assert progress.verdicts == [("CORRECT", 2)]
    found = [
        (each.before and each.before.own_score, each.now.own_score, each.change_words)
        for each in progress.rows
    ]
    assert found == [(3.0, 1.5, "▼ −50 %"), (2.0, 2.01, "about the same")]


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
