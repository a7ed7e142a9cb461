"""Submissions of an earlier version are evaluated again: chosen, queued, compared, cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.task import Abi
from gpu_runner.data.verdict import Direction, Verdict
from runs_app.errors import NotAllowed, SubmissionError, WrongState
from runs_app.integrity.eligibility import eligible_evaluations
from runs_app.models import Evaluation, Submission
from runs_app.submissions.quota import quota
from runs_app.submissions.services import cancel
from runs_app.submissions.shipped import submit_shipped_kernels
from tasks_app.curation.reevaluation.boards import board_plans
from tasks_app.curation.reevaluation.estimate import estimates_of
from tasks_app.curation.reevaluation.plan import Fate, plan_of
from tasks_app.curation.reevaluation.progress import acts_of, progress_of
from tasks_app.curation.reevaluation.selectors import changes_between
from tasks_app.curation.reevaluation.services import cancel_reevaluation, reevaluate
from tasks_app.models import AuditEntry
from tests import factories as make
from tests.unit.queued import Jobs
from tests.unit.tasks_app.curation.reevaluation.reevaluated import (
    CPU,
    begin,
    chosen,
    end,
    entered,
    fates,
    next_version,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def test_the_usual_choice_is_the_best_of_each_agent_of_the_newest_earlier_version() -> None:
    user = make.make_user()
    entered("slow", 1.5)
    entered("fast", 3.0, user=user)
    entered("fast", 2.0, user=user, source=f"// older\n{make.SOURCE}")
    entered("hidden", 9.0, private=True)
    entered("wrong", verdict=Verdict.WRONG_RESULT)
    version = next_version()
    choice = chosen(version)
    assert (choice.source.number, choice.target, choice.what) == (1, version, "best")
    assert [device.slug for device in choice.devices] == ["cpu"]
    assert fates(plan_of(choice)) == [("fast", Fate.NEW), ("slow", Fate.NEW)]
    assert fates(plan_of(chosen(version, "what=top&top=1&device=cpu"))) == [("fast", Fate.NEW)]


def test_what_does_not_stand_is_carried_only_where_everything_is() -> None:
    entered("good")
    entered("hidden", private=True)
    entered("wrong", verdict=Verdict.WRONG_RESULT)
    suspicion = Suspicion(check=Check.SOURCE, reason="calls dlopen", line=1)
    entered("suspicious", result={"suspicions": (suspicion,)})
    barred = entered("barred")
    Evaluation.objects.filter(pk=barred.pk).update(audited="failed")
    trial = entered("trial")
    make.give_to_run(trial.submission)
    tried = Submission.objects.filter(pk=entered("dry run", private=True).submission_id)
    tried.update(origin=Submission.Origin.DRY_RUN)
    version = next_version()
    found = {}
    for what in ("best", "correct", "all"):
        plan = plan_of(chosen(version, f"what={what}&device=cpu"))
        found[what] = {each.evaluation.submission.agent.name for each in plan.queued}
    assert found == {
        "best": {"good"},
        "correct": {"good", "hidden"},
        "all": {"good", "hidden", "wrong", "suspicious", "barred"},
    }


def test_a_start_enters_copies_in_the_background_and_on_no_quota(jobs: Jobs) -> None:
    user = make.make_user()
    public = entered("fast", 3.0, user=user, language_model="gpt-5.1")
    private = entered("hidden", user=user, private=True)
    used = quota(user, make.later(100)).today
    version = next_version()
    act = begin(version, "what=correct&device=cpu")
    for earlier in (public.submission, private.submission):
        copy = earlier.carried_to.get()
        same = ("author", "agent", "language_model", "source", "language", "digest", "private")
        assert [getattr(copy, name) for name in same] == [getattr(earlier, name) for name in same]
        assert (copy.task_version, copy.origin) == (version, "carried")
        evaluation = copy.evaluations.get()
        assert (evaluation.mode, evaluation.background) == ("ranked", True)
    assert act.evaluations.count() == 2
    assert quota(user, make.later(101)).today == used
    assert quota(user, make.later(101)).waiting == 0
    assert (act.kind, act.version, act.actor is not None) == ("reevaluated", version, True)
    assert act.details["evaluations"] == act.details["submissions"] == 2
    assert act.reason == "all correct ones of version 1 on version 2, on cpu"


def test_starting_again_queues_nothing_twice_and_a_lost_one_once_more() -> None:
    entered("fast", 3.0)
    entered("slow", 1.5)
    version = next_version()
    act = begin(version)
    assert {fate for _, fate in fates(plan_of(chosen(version)))} == {Fate.UNDER_WAY}
    with pytest.raises(SubmissionError, match="nothing would be evaluated"):
        begin(version)
    fast, slow = act.evaluations.order_by("created_at")
    end(fast, 2.5)
    cancel(evaluation=slow, user=slow.submission.author, now=make.later(300))
    plan = plan_of(chosen(version))
    assert fates(plan) == [("fast", Fate.DONE), ("slow", Fate.AGAIN)]
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
    assert fates(plan_of(chosen(version))) == [("fast", Fate.AGAIN)]
    begin(version)
    again = Submission.objects.get(task_version=version)
    assert again.carried_from is None
    assert sorted(again.evaluations.values_list("mode", flat=True)) == ["quick", "ranked"]


def test_a_changed_count_and_a_changed_task_start_nothing() -> None:
    entered("fast")
    version = next_version()
    choice = chosen(version)
    admin, moment = make.make_admin(), make.later(100)
    with pytest.raises(SubmissionError) as caught:
        reevaluate(choice=choice, count=2, user=admin, now=moment)
    assert caught.value.field == "count"
    with pytest.raises(NotAllowed):
        reevaluate(choice=choice, count=1, user=make.make_user(), now=moment)
    next_version(description="the third version")
    with pytest.raises(WrongState):
        reevaluate(choice=choice, count=1, user=admin, now=moment)
    assert not Submission.objects.filter(task_version=version).exists()
    assert not AuditEntry.objects.filter(kind="reevaluated").exists()


def test_no_more_than_the_most_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.curation.reevaluation.plan.MOST_AT_ONCE", 1)
    entered("slow", 1.5)
    entered("fast", 3.0)
    version = next_version()
    assert fates(plan_of(chosen(version))) == [("fast", Fate.NEW), ("slow", Fate.LATER)]
    begin(version)
    assert fates(plan_of(chosen(version))) == [("fast", Fate.UNDER_WAY), ("slow", Fate.NEW)]


def test_measuring_again_makes_no_submission_and_keeps_places_until_then() -> None:
    first = entered("fast", 3.0)
    version = first.task_version
    choice = chosen(version)
    assert choice.same
    act = begin(version)
    assert Submission.objects.count() == 1
    [again] = act.evaluations.all()
    assert eligible_evaluations().get() == first
    assert fates(plan_of(chosen(version))) == [("fast", Fate.UNDER_WAY)]
    end(again, 3.3)
    [board] = progress_of(act).boards
    [row] = board.rows
    assert (row.before, row.now, row.place_before, row.place_now) == (first, again, 1, 1)
    assert row.change == pytest.approx(0.1)
    assert row.change_words == "▲ +10.0 %"


def test_shipped_kernels_come_along_once(settings: Any) -> None:
    settings.SUBMIT_SHIPPED_KERNELS = True
    version = make.make_task_version()
    submit_shipped_kernels(device=make.make_cpu(), now=make.NOW, versions=[version])
    end(Evaluation.objects.get(), 1.2, seconds=1)
    other = 'extern "C" void scale(float* out, const float* x, int N) { out[0] = x[0] * N; }\n'
    files = {**make.make_task().files, "kernels/good.cpp": other}
    changed = next_version(files=files)
    plan = plan_of(chosen(changed))
    assert (len(plan.queued), plan.shipped, plan.count) == (1, {"cpu": 1}, 2)
    act = begin(changed)
    found = set(act.evaluations.values_list("submission__source", flat=True))
    assert found == {make.SOURCE, other}
    same = next_version(description="the third version")  # ships what version 1 shipped
    plan = plan_of(chosen(same, "version=1"))
    assert (len(plan.queued), plan.shipped) == (1, {})
    begin(same, "version=1", seconds=500)
    assert Evaluation.objects.filter(task_version=same).count() == 1


def test_what_cannot_be_carried_says_why() -> None:
    entered("fast")
    backward = next_version(abi=Abi.TORCH, signature="", directions=(Direction.BACKWARD,), work={})
    plan = plan_of(chosen(backward))
    assert fates(plan) == [("fast", Fate.REFUSED)]
    assert plan.planned[0].reason == "version 2 has no forward direction"
    [board] = board_plans(plan)
    assert (board.queued, board.falling) == (0, 1)
    changed = next_version(signature="void scale(float* out, const float* x, int N, int stride)")
    source = changed.task.versions.get(number=1)
    [change] = changes_between(source, changed)
    assert change.name == "forward signature"
    assert change.before == 'extern "C" void scale(float* out, const float* x, int N);'
    assert "int stride" in change.after
    assert [change.name for change in changes_between(source, backward)] == ["ABI"]


def test_the_time_comes_from_the_same_submissions_and_from_the_queue() -> None:
    version = entered("fast", 3.0).task_version
    unknown = entered("slow", 1.5)
    Evaluation.objects.filter(pk=unknown.pk).update(started_at=None)
    make.make_submission(task_version=version, mode="ranked", source="// waits\n")
    target = next_version()
    [estimate] = estimates_of(plan_of(chosen(target)), make.make_admin(), make.later(100))
    assert (estimate.evaluations, estimate.known, estimate.guessed) == (2, 1, 1)
    assert (estimate.median_s, estimate.own_s) == (40.0, 80.0)
    # the submission, and the audit of the leader, for whose mode any evaluation stands in
    assert (estimate.ahead, estimate.ahead_s, estimate.total_s) == (2, 80.0, 160.0)
    assert "no runner for cpu" in estimate.reason
    for _ in range(2):
        make.make_runner(seen_at=make.later(100))
    [estimate] = estimates_of(plan_of(chosen(target)), make.make_admin(), make.later(100))
    assert (estimate.total_s, estimate.reason) == (80.0, "")


def test_old_and_new_places_stand_side_by_side() -> None:
    entered("first", 3.0)
    entered("second", 2.0)
    entered("third", 1.0)
    version = next_version()
    act = begin(version, "what=top&top=2&device=cpu")
    first, second = act.evaluations.order_by("created_at")
    end(first, 1.5)
    end(second, 2.5)
    progress = progress_of(act)
    assert (progress.ended, progress.total, progress.under_way) == (2, 2, False)
    assert progress.verdicts == (("CORRECT", 2),)
    [board] = progress.boards
    assert board.board == CPU
    rows = [(row.place_before, row.place_now, row.moved, bool(row.now)) for row in board.rows]
    assert rows == [(1, 2, "1 down", True), (2, 1, "1 up", True), (3, None, "", False)]
    assert board.others == ()
    assert progress_of(act, 1).more == 2


def test_only_what_still_waits_is_cancelled(jobs: Jobs) -> None:
    entered("first", 3.0)
    entered("second", 2.0)
    act = begin(next_version())
    running, waiting = act.evaluations.order_by("created_at")
    make.start(running)
    assert cancel_reevaluation(act=act, user=make.make_admin(), now=make.later(150)) == 1
    running.refresh_from_db()
    waiting.refresh_from_db()
    assert (running.status, waiting.status) == ("RUNNING", "CANCELLED")
    assert act.version is not None
    assert list(acts_of(act.version.task)) == [act]  # not the note of the cancellation
    with pytest.raises(WrongState):
        cancel_reevaluation(act=act, user=make.make_admin(), now=make.later(160))


def test_other_work_of_the_same_moment_is_no_part_of_it(settings: Any) -> None:
    settings.SUBMIT_SHIPPED_KERNELS = True
    entered("fast", 3.0)
    device = make.make_device(slug="cpu-2", kind="cpu", name="another CPU")
    version = next_version()
    act = begin(version)
    own = set(act.evaluations.all())
    assert len(own) == 2  # with the shipped kernel
    [other] = submit_shipped_kernels(device=device, now=make.later(100.001), versions=[version])
    assert set(act.evaluations.all()) == own
    assert cancel_reevaluation(act=act, user=make.make_admin(), now=make.later(150)) == 2
    other.refresh_from_db()
    assert other.status == "QUEUED"
