"""Submissions of an earlier version are evaluated again: previewed, started, watched."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.integrity import Check, Suspicion
from gpu_runner.data.task import Abi
from gpu_runner.data.verdict import Direction, Verdict
from runs_app import selectors, services
from runs_app.forms.reevaluation import ReevaluationForm
from runs_app.models import Evaluation, Submission
from runs_app.selectors.reevaluation import Choice, changes_between
from runs_app.selectors.reevaluation_boards import board_plans
from runs_app.selectors.reevaluation_estimate import estimates_of
from runs_app.selectors.reevaluation_plan import Fate, Plan, plan_of
from runs_app.selectors.reevaluation_progress import acts_of, progress_of
from runs_app.services import NotAllowed, SubmissionError, WrongState
from tasks_app.models import Act, TaskVersion
from tests import factories as make
from tests.unit.runs_app.conftest import Jobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

CPU = ("cpu", "forward")


def entered(agent: str, speedup: float = 2.0, **overrides: Any) -> Evaluation:
    """A ranked evaluation of version 1 that took 40 s; correct unless told otherwise."""
    verdict = overrides.pop("verdict", Verdict.CORRECT)
    result = overrides.pop("result", {})
    if verdict is Verdict.CORRECT:
        result = {"speedups": {"best": speedup}, "latency_ns": 1000 / speedup} | result
    source = overrides.pop("source", f"// by {agent}\n{make.SOURCE}")
    evaluation = make.make_finished_evaluation(
        verdict, result=result, agent=agent, source=source, mode="ranked", **overrides
    )
    Evaluation.objects.filter(pk=evaluation.pk).update(finished_at=make.later(40))
    evaluation.refresh_from_db()
    return evaluation


def next_version(**overrides: Any) -> TaskVersion:
    return make.make_task_version(**{"description": "the second version", **overrides})


def chosen(version: TaskVersion, address: str = "") -> Choice:
    """The choice that an address makes on the page of the version's task."""
    version.task.refresh_from_db()
    form = ReevaluationForm(QueryDict(address), task=version.task)
    assert form.is_valid(), form.errors
    return form.choice()


def begin(version: TaskVersion, address: str = "", seconds: float = 100) -> Act:
    choice = chosen(version, address)
    return services.reevaluate(
        choice=choice,
        count=plan_of(choice).count,
        user=make.make_admin(),
        now=make.later(seconds),
    )


def end(evaluation: Evaluation, speedup: float, seconds: float = 200) -> None:
    """Let a runner finish a queued evaluation."""
    document = make.make_result(evaluation, speedups={"best": speedup}, latency_ns=1000 / speedup)
    now = make.later(seconds)
    make.start(evaluation, now=now)
    make.send(evaluation, EventKind.FINISHED, {"result": codec.encode(document)}, seq=2, now=now)


def fates(plan: Plan) -> list[tuple[str, Fate]]:
    return [(each.evaluation.submission.agent.name, each.fate) for each in plan.planned]


def page(version: TaskVersion, address: str = "") -> str:
    url = reverse("task-reevaluate", args=[version.task.slug])
    return f"{url}?{address}" if address else url


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(make.make_admin())
    return client


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
    trial.submission.run = make.make_run(task_version=trial.task_version)
    trial.submission.save()
    Submission.objects.filter(pk=entered("dry run", private=True).submission_id).update(
        created_at=make.later(-60)  # before version 1 was public
    )
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
    used = selectors.quota(user, make.later(100)).today
    version = next_version()
    act = begin(version, "what=correct&device=cpu")
    for earlier in (public.submission, private.submission):
        copy = earlier.carried_to.get()
        same = ("author", "agent", "language_model", "source", "language", "digest", "private")
        assert [getattr(copy, name) for name in same] == [getattr(earlier, name) for name in same]
        assert copy.task_version == version
        evaluation = copy.evaluations.get()
        assert (evaluation.mode, evaluation.background) == ("ranked", True)
    assert act.evaluations.count() == 2
    assert selectors.quota(user, make.later(101)).today == used
    assert selectors.quota(user, make.later(101)).waiting == 0
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
    services.cancel(evaluation=slow, user=slow.submission.author, now=make.later(300))
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
        services.reevaluate(choice=choice, count=2, user=admin, now=moment)
    assert caught.value.field == "count"
    with pytest.raises(NotAllowed):
        services.reevaluate(choice=choice, count=1, user=make.make_user(), now=moment)
    next_version(description="the third version")
    with pytest.raises(WrongState):
        services.reevaluate(choice=choice, count=1, user=admin, now=moment)
    assert not Submission.objects.filter(task_version=version).exists()
    assert not Act.objects.filter(kind="reevaluated").exists()


def test_no_more_than_the_most_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs_app.selectors.reevaluation_plan.MOST_AT_ONCE", 1)
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
    assert selectors.standing_evaluations().get() == first
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
    services.submit_shipped_kernels(device=make.make_cpu(), now=make.NOW, versions=[version])
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
    assert services.cancel_reevaluation(act=act, user=make.make_admin(), now=make.later(150)) == 1
    running.refresh_from_db()
    waiting.refresh_from_db()
    assert (running.status, waiting.status) == ("RUNNING", "CANCELLED")
    assert act.version is not None
    assert list(acts_of(act.version.task)) == [act]  # not the note of the cancellation
    with pytest.raises(WrongState):
        services.cancel_reevaluation(act=act, user=make.make_admin(), now=make.later(160))


def test_other_work_of_the_same_moment_is_no_part_of_it(settings: Any) -> None:
    settings.SUBMIT_SHIPPED_KERNELS = True
    entered("fast", 3.0)
    device = make.make_device(slug="cpu-2", kind="cpu", name="another CPU")
    version = next_version()
    act = begin(version)
    own = set(act.evaluations.all())
    assert len(own) == 2  # with the shipped kernel
    [other] = services.submit_shipped_kernels(
        device=device, now=make.later(100.001), versions=[version]
    )
    assert set(act.evaluations.all()) == own
    assert services.cancel_reevaluation(act=act, user=make.make_admin(), now=make.later(150)) == 2
    other.refresh_from_db()
    assert other.status == "QUEUED"


def test_the_page_is_for_admins(admin: Client, client: Client) -> None:
    version = entered("fast").task_version
    assert client.get(page(version)).status_code == 302
    client.force_login(make.make_user())
    assert client.get(page(version)).status_code == 403
    assert client.post(page(version), {"count": "1"}).status_code == 403
    assert admin.get(page(version)).status_code == 200
    assert admin.get(page(version, "act=99")).status_code == 404


def test_the_page_previews_starts_and_watches(admin: Client) -> None:
    entered("fast", 3.0)
    entered("slow", 1.5)
    version = next_version()
    text = admin.get(page(version, "what=top&top=1&device=cpu")).content.decode()
    assert "Queue 1 evaluation<" in text
    assert "1 place of version 1 would fall out" in text
    fields = {"version": "1", "what": "top", "top": "1", "device": "cpu", "target": "2"}
    answer = admin.post(page(version), fields | {"count": "7"})
    assert answer.status_code == 422
    assert "not the 7 that you saw" in answer.content.decode()
    assert "Queue 1 evaluation<" in answer.content.decode()
    assert not Submission.objects.filter(task_version=version).exists()
    answer = admin.post(page(version), fields | {"count": "1"})
    act = Act.objects.get(kind="reevaluated")
    assert answer.headers["Location"] == page(version, f"act={act.pk}")
    text = admin.get(answer.headers["Location"]).content.decode()
    assert "Under way: 0 of 1" in text
    assert 'hx-trigger="every 3s"' in text
    assert "not carried" in text
    copy = Submission.objects.get(task_version=version)
    text = admin.get(copy.get_absolute_url()).content.decode()
    assert "from version 1</a> by the site" in text
    cancel = reverse("task-reevaluate-cancel", args=[version.task.slug, act.pk])
    assert admin.post(cancel).status_code == 302
    fragment = admin.get(page(version, f"act={act.pk}"), headers={"HX-Request": "true"})
    assert "Done: 0 of 1" in fragment.content.decode()
    assert "hx-trigger" not in fragment.content.decode()
    assert "<html" not in fragment.content.decode()


def test_what_was_previewed_for_another_version_is_not_started(admin: Client) -> None:
    entered("fast")
    version = next_version()
    text = admin.get(page(version)).content.decode()
    assert '<input type="hidden" name="target" value="2">' in text
    next_version(description="the third version")  # as many would be queued there
    fields = {"version": "1", "what": "best", "device": "cpu", "count": "1"}
    for target in ({"target": "2"}, {}):
        answer = admin.post(page(version), fields | target)
        assert answer.status_code == 422
        assert "version 3 is the current one by now" in answer.content.decode().lower()
    assert not Act.objects.filter(kind="reevaluated").exists()


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("version=7", "version"),
        ("what=some&device=cpu", "what"),
        ("what=best", "device"),
        ("what=top&top=0&device=cpu", "top"),
    ],
)
def test_a_wrong_choice_names_its_field(admin: Client, address: str, field: str) -> None:
    version = entered("fast").task_version
    answer = admin.get(page(version, address))
    assert answer.status_code == 422
    assert f'href="#id_{field}"' in answer.content.decode()


def test_a_task_without_results_or_without_a_public_has_nothing_to_start(admin: Client) -> None:
    version = make.make_task_version()
    assert "nothing to evaluate again" in admin.get(page(version)).content.decode()
    make.make_finished_evaluation(mode="ranked", task_version=version)
    version.task.state = "retired"
    version.task.save()
    text = admin.get(page(version)).content.decode()
    assert "This task is not public" in text
    assert '<button class="button primary"' not in text
    with pytest.raises(WrongState):
        begin(version)
