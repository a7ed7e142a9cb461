"""Stops, announcements, runners and queues, as admins steer them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from gpu_runner.data.event import RunnerState
from gpu_runner.data.verdict import Mode
from runs_app.errors import QuotaExceeded, Stopped, SubmissionError, WrongState
from runs_app.messaging import queues
from runs_app.models import (
    Announcement,
    Evaluation,
    PersonalQuota,
    Run,
    Runner,
    RunnerReading,
    Status,
    Submission,
)
from runs_app.operations import readings
from runs_app.operations.emptying import Part, empty_queue
from runs_app.operations.services import announce, end_announcement, steer
from runs_app.optimisation.services.control import check_running, resume_run
from runs_app.runners.heartbeats import record_runner
from runs_app.submissions.quota import quota
from runs_app.submissions.services import rerun
from runs_app.work.limits import limits_of
from tasks_app.models import AuditEntry, TaskVersion
from tests import factories as make

pytestmark = pytest.mark.django_db

Kind = Announcement.Kind


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> list[Runner]:
    runners: list[Runner] = []
    for name in ("enqueue", "drop", "enqueue_advance"):
        monkeypatch.setattr(queues, name, lambda *arguments: True)
    monkeypatch.setattr(queues, "steer", lambda runner: runners.append(runner) or True)
    return runners


@pytest.fixture
def admin() -> User:
    return make.make_admin(username="judge")


def stop(kind: Kind, admin: User, **options: Any) -> Announcement:
    fields = {"text": "moving house", "until": None, "now": make.NOW, **options}
    return announce(kind=kind, user=admin, **fields)


class TestStops:
    def test_submissions_are_refused_with_the_reason(self, admin: User, client: Client) -> None:
        submission = make.make_submission()
        made = stop(Kind.SUBMISSIONS, admin, now=timezone.now())
        version = TaskVersion.objects.get()
        with pytest.raises(Stopped, match="takes no submissions now: moving house"):
            make.make_submission(task_version=version, now=timezone.now())
        with pytest.raises(Stopped):
            rerun(submission=submission, user=submission.author, now=timezone.now())
        body = {"task": "scale", "source": make.SOURCE, "language": "cpp"}
        answer = client.post(
            "/api/v1/submissions",
            body,
            content_type="application/json",
            HTTP_AUTHORIZATION=f"Bearer {make.make_token(make.make_user())}",
        )
        assert answer.status_code == 503
        assert "moving house" in answer.json()["reason"]
        assert Submission.objects.count() == 1
        assert "moving house" in client.get("/tasks/").content.decode()
        end_announcement(announcement=made, user=admin, now=timezone.now())
        make.make_submission(task_version=version, now=timezone.now())
        changes = [entry.details["change"] for entry in AuditEntry.objects.filter(kind="switched")]
        assert changes == ["reopened", "stopped"]

    def test_a_stop_ends_at_its_time(self, admin: User) -> None:
        stop(Kind.SUBMISSIONS, admin, until=make.later(60))
        version = make.make_task_version()
        with pytest.raises(Stopped, match=r"until 2026-01-02 03:05 UTC"):
            make.make_submission(task_version=version, now=make.later(59))
        make.make_submission(task_version=version, now=make.later(61))
        stop(Kind.SUBMISSIONS, admin, now=make.later(62))
        with pytest.raises(WrongState):
            stop(Kind.SUBMISSIONS, admin, now=make.later(63))

    def test_runs_are_paused_and_none_begins(self, admin: User) -> None:
        run = make.make_run()
        stop(Kind.RUNS, admin)
        run.refresh_from_db()
        assert run.status == Run.Status.PAUSED
        assert run.reason == "an admin stopped all runs: moving house"
        for act in (
            lambda: check_running(make.make_user(), make.later(1)),
            lambda: resume_run(run=run, user=run.user, now=make.later(1)),
        ):
            with pytest.raises(Stopped, match="starts no runs now"):
                act()

    @pytest.mark.parametrize(
        ("change", "field"),
        [({"text": " "}, "text"), ({"text": "x" * 501}, "text"), ({"until": make.NOW}, "until")],
    )
    def test_what_cannot_be_is_refused(
        self, admin: User, change: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(SubmissionError) as refusal:
            stop(Kind.NOTE, admin, **change)
        assert refusal.value.field == field
        assert not Announcement.objects.exists()

    def test_the_page_announces_and_ends(self, admin: User, client: Client) -> None:
        client.force_login(admin)
        fields = {"kind": "note", "text": "<b>Maintenance</b> at noon"}
        assert client.post("/operate/", {**fields, "until": "2020-01-01"}).status_code == 422
        assert client.post("/operate/", {**fields, "kind": "all"}).status_code == 422
        assert client.post("/operate/", fields).status_code == 302
        text = Client().get("/").content.decode()
        assert "&lt;b&gt;Maintenance&lt;/b&gt; at noon" in text
        made = Announcement.objects.get()
        assert client.post(f"/operate/announcements/{made.pk}/end/").status_code == 302
        assert "Maintenance" not in Client().get("/").content.decode()
        assert client.post("/operate/announcements/999/end/").status_code == 404


class TestLimits:
    def test_a_new_account_may_use_a_share(self) -> None:
        new = make.make_user(date_joined=make.NOW)
        with override_settings(MAX_WAITING_PER_USER=20, NEW_ACCOUNT_SHARE=0.25):
            assert limits_of(new, make.later(60)).waiting == 5
            assert limits_of(new, make.NOW + timedelta(days=4)).waiting == 20
            assert limits_of(make.make_admin(date_joined=make.NOW), make.NOW).waiting == 20

    def test_the_refusal_says_why(self) -> None:
        new = make.make_user(date_joined=make.NOW)
        version = make.make_task_version()
        with override_settings(MAX_SUBMISSIONS_PER_DAY=4, NEW_ACCOUNT_SHARE=0.25):
            make.make_submission(user=new, task_version=version)
            with pytest.raises(QuotaExceeded, match="your account is new"):
                make.make_submission(user=new, task_version=version)

    def test_a_personal_limit_comes_first(self) -> None:
        who = make.make_user(date_joined=make.NOW)
        PersonalQuota.objects.create(user=who, waiting=0, running_runs=7)
        limits = limits_of(who, make.NOW)
        assert (limits.waiting, limits.running_runs) == (0, 7)
        with pytest.raises(QuotaExceeded, match="an admin has set this limit for you"):
            make.make_submission(user=who)


def beat(runner: Runner, **changes: Any) -> Runner:
    fields: dict[str, Any] = {
        "name": runner.name, "boot_id": runner.boot_id, "device": runner.device_id,
        "device_kind": "cpu", "device_name": "CPU", "state": "ready", "reason": "", "jail": True,
        "current": (), "builds": 1, "version": "1", "at": 0.0,
    }  # fmt: skip
    record_runner(state=RunnerState(**{**fields, **changes}), now=make.later(10))
    runner.refresh_from_db()
    return runner


class TestRunners:
    def test_a_wish_is_told_until_it_is_heeded(
        self, admin: User, told: list[Runner], django_capture_on_commit_callbacks: Any
    ) -> None:
        runner = make.make_runner()
        with django_capture_on_commit_callbacks(execute=True):
            steer(runner=runner, wanted=Runner.Wanted.DRAIN, reason="fan", user=admin, now=make.NOW)
        assert len(told) == 1
        with django_capture_on_commit_callbacks(execute=True):
            beat(runner)
        assert len(told) == 2
        with django_capture_on_commit_callbacks(execute=True):
            beat(runner, state="draining")
        assert len(told) == 2
        entry = AuditEntry.objects.get()
        assert (entry.kind, entry.name, entry.reason) == ("steered", runner.name, "fan")
        with pytest.raises(WrongState):
            steer(runner=runner, wanted=Runner.Wanted.DRAIN, reason="x", user=admin, now=make.NOW)
        with pytest.raises(SubmissionError):
            steer(runner=runner, wanted=Runner.Wanted.DISABLE, reason="", user=admin, now=make.NOW)

    def test_a_disabled_runner_gives_its_work_back_once_it_takes_no_more(self, admin: User) -> None:
        runner = make.make_runner()
        evaluation = make.make_evaluation()
        make.start(evaluation, runner=runner.name)
        steer(runner=runner, wanted=Runner.Wanted.DISABLE, reason="hot", user=admin, now=make.NOW)
        beat(runner, current=(str(evaluation.pk),))
        evaluation.refresh_from_db()
        assert (evaluation.status, evaluation.attempt) == (Status.RUNNING, 1)
        beat(runner, state="draining", current=(str(evaluation.pk),))
        evaluation.refresh_from_db()
        assert (evaluation.status, evaluation.attempt) == (Status.QUEUED, 2)
        assert "disabled runner" in evaluation.reason

    def test_readings_are_kept_once_a_minute_and_shown(self, admin: User, client: Client) -> None:
        runner = make.make_runner()
        for minute in range(5):
            for second in (0, 15, 30):
                now = timezone.now() - timedelta(minutes=5 - minute) + timedelta(seconds=second)
                readings.record(runner, {"temperature_c": 60.0 + minute, "odd": 1.0}, now)
        assert RunnerReading.objects.count() == 5
        client.force_login(admin)
        text = client.get(f"/operate/runners/{runner.pk}/sensors/?hours=6").content.decode()
        assert "60 to 64 °C" in text
        assert text.count("<polyline") == 1
        assert "Not known here: clock" in text
        RunnerReading.objects.all().delete()
        text = client.get(f"/operate/runners/{runner.pk}/sensors/?hours=zz").content.decode()
        assert "has told nothing" in " ".join(text.split())

    def test_old_readings_go(self) -> None:
        runner = make.make_runner()
        readings.record(runner, {"power_w": 1.0}, make.NOW)
        readings.record(runner, {"power_w": 1.0}, make.NOW + timedelta(days=8))
        assert RunnerReading.objects.count() == 1


class TestEmptying:
    def test_each_job_ends_with_the_reason_and_nobody_pays(
        self, admin: User, client: Client
    ) -> None:
        version = make.make_task_version()
        author = make.make_user()
        mine = make.make_evaluation(user=author, task_version=version)
        running = make.make_evaluation(user=author, task_version=version)
        make.start(running)
        shipped = make.make_evaluation(task_version=version)
        Evaluation.objects.filter(pk=shipped.pk).update(background=True)
        used = quota(author, make.NOW).today
        client.force_login(admin)
        path = "/operate/queues/cpu/empty/"
        assert "People: 1 waiting" in client.get(path).content.decode()
        assert client.post(path, {"reason": "x"}).status_code == 422
        assert client.post(path, {"parts": "people"}).status_code == 422
        assert client.post(path, {"parts": "everything", "reason": "x"}).status_code == 422
        assert client.post(path, {"parts": "people", "reason": "a flood"}).status_code == 302
        for row in (mine, running, shipped):
            row.refresh_from_db()
        assert (mine.status, mine.reason) == (
            Status.CANCELLED,
            "an admin emptied the queue: a flood",
        )
        assert (running.status, shipped.status) == (Status.RUNNING, Status.QUEUED)
        assert quota(author, make.NOW).today == used - 1
        page = client.get(f"/submissions/{mine.submission_id}/").content.decode()
        assert "An admin emptied the queue: a flood" in page
        entry = AuditEntry.objects.get(kind="emptied")
        assert entry.details["cancelled"] == {"people": 1}
        assert client.get("/operate/queues/nowhere/empty/").status_code == 404

    def test_runs_are_paused_first(self, admin: User) -> None:
        run = make.make_run()
        candidate = make.make_evaluation(task_version=run.task_version)
        Submission.objects.filter(pk=candidate.submission_id).update(origin="run", run=run)
        empty_queue(
            device=candidate.device, parts=[Part.RUNS], reason="x", user=admin, now=make.later(1)
        )
        run.refresh_from_db()
        candidate.refresh_from_db()
        assert (run.status, candidate.status) == (Run.Status.PAUSED, Status.CANCELLED)

    def test_audits_and_background_are_apart(self, admin: User) -> None:
        version = make.make_task_version()
        audit, own = (make.make_evaluation(task_version=version) for _ in range(2))
        Evaluation.objects.filter(pk=audit.pk).update(background=True, mode=Mode.AUDIT.value)
        Evaluation.objects.filter(pk=own.pk).update(background=True)
        count = empty_queue(
            device=own.device, parts=[Part.BACKGROUND], reason="x", user=admin, now=make.NOW
        )
        assert count == 1
        audit.refresh_from_db()
        assert audit.status == Status.QUEUED
