"""Stops, announcements, runners and queues: how admins steer them, and what is shown."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from gpu_runner.data import codec, mailbox
from gpu_runner.data.order import Word
from runs_app.core.errors import QuotaExceeded, Stopped, SubmissionError, WrongState
from runs_app.core.messaging import orders, queues
from runs_app.core.runners.heartbeats import record_runner
from runs_app.core.work.limits import limits_of
from runs_app.features.operations import readings
from runs_app.features.operations.models import RunnerReading
from runs_app.features.operations.services import announce, end_announcement, steer
from runs_app.models import Announcement, PersonalQuota, Run, Runner, Status, Submission
from runs_app.optimiser.services.control import check_running, resume_run
from runs_app.submitting.services import rerun
from tasks_app.models import AuditEntry, TaskVersion
from tests import factories as make

pytestmark = pytest.mark.django_db

Kind = Announcement.Kind


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> list[Runner]:
    runners: list[Runner] = []
    for module, name in ((orders, "enqueue"), (orders, "drop"), (queues, "enqueue_advance")):
        monkeypatch.setattr(module, name, lambda *arguments: True)
    monkeypatch.setattr(orders, "tell", lambda runner: runners.append(runner) or True)
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
        with pytest.raises(Stopped, match="isn't accepting submissions right now: moving house"):
            make.make_submission(task_version=version, now=timezone.now())
        with pytest.raises(Stopped):
            rerun(submission=submission, user=submission.author, now=timezone.now())
        answer = client.post(
            "/api/v1/submissions",
            {"task": "scale", "source": make.SOURCE, "language": "cpp"},
            content_type="application/json",
            headers={"Authorization": f"Bearer {make.make_token(make.make_user())}"},
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
        assert "moving house" in run.reason
        for act in (
            lambda: check_running(make.make_user(), make.later(1)),
            lambda: resume_run(run=run, user=run.user, now=make.later(1)),
        ):
            with pytest.raises(Stopped, match="isn't starting runs right now"):
                act()

    def test_the_page_announces_and_ends(self, admin: User, client: Client) -> None:
        for change in ({"text": " "}, {"text": "x" * 501}, {"until": make.NOW}):
            with pytest.raises(SubmissionError) as refusal:
                stop(Kind.NOTE, admin, **change)
            assert refusal.value.field in change
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
        with pytest.raises(QuotaExceeded, match="an admin set this limit for you"):
            make.make_submission(user=who)


def beat(runner: Runner, **changes: Any) -> Runner:
    fields = {"name": runner.own_name, "boot_id": runner.boot_id, "device": runner.device_id}
    state = make.make_runner_state(**fields, **changes)
    record_runner(state=state, token=runner.token, now=make.later(10))
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
        make.start(evaluation, runner=runner.own_name)
        steer(runner=runner, wanted=Runner.Wanted.DISABLE, reason="hot", user=admin, now=make.NOW)
        beat(runner, current=(f"evaluation-{evaluation.pk}-1",))
        evaluation.refresh_from_db()
        assert (evaluation.status, evaluation.attempt) == (Status.RUNNING, 1)
        beat(runner, state="draining", current=(f"evaluation-{evaluation.pk}-1",))
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
        assert "Not available: clock" in text
        RunnerReading.objects.all().delete()
        for value in (math.inf, math.nan):
            readings.record(runner, {"power_w": value}, make.NOW)
        assert not RunnerReading.objects.exists()
        readings.record(runner, {"power_w": 1.0}, make.NOW)
        readings.record(runner, {"power_w": 1.0}, make.NOW + timedelta(days=8))
        assert RunnerReading.objects.count() == 1  # old ones go


def steered(wanted: str, state: str) -> Runner:
    reason = "" if wanted == "work" else "hot"
    said = "by an admin: hot" if state == "draining" and wanted != "work" else ""
    return make.make_runner(
        wanted=wanted, wanted_reason=reason, state=state, reason=said, seen_at=timezone.now()
    )


def test_what_is_told_to_a_runner_is_who_holds_it_and_why_and_what_it_has_lost(
    settings: Any, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # it is told in earnest
    settings.RUNNERS_REDIS_URL = redis_url
    held = steered("disable", "ready")
    mine, lost = make.make_evaluation(), make.make_evaluation(source=f"{make.SOURCE}// lost")
    make.hand_over(mine, held.own_name)
    held.current = [f"evaluation-{mine.pk}-1", f"evaluation-{lost.pk}-1"]
    assert orders.tell(held)
    key = mailbox.word_key(held.token.mailbox, held.own_name)
    word = codec.decode(Word, json.loads(orders.connection().get(key)))
    assert word == Word(hold="by an admin: hot", dropped=(f"evaluation-{lost.pk}-1",))


def test_an_admin_steers_a_runner_from_the_page(client: Client, admin: User) -> None:
    client.force_login(admin)
    runner = make.make_runner()
    client.post(f"/operate/runners/{runner.pk}/", {"wanted": "disable", "reason": "hot"})
    runner.refresh_from_db()
    assert (runner.wanted, runner.wanted_reason) == ("disable", "hot")


def test_runners_that_stopped_or_were_revoked_are_folded_away(client: Client, admin: User) -> None:
    client.force_login(admin)
    make.make_runner(name="here", seen_at=timezone.now())
    make.make_runner(name="left", state=Runner.State.STOPPED)
    lost = make.make_runner(name="lost", token=make.make_runner_token(name="guest"))
    client.post(f"/operate/tokens/{lost.token_id}/revoke/", {"reason": "sold"})
    page = client.get("/operate/").content.decode()
    shown, _, folded = page.partition(' id="gone"')
    names = ("test.here", "test.left", "guest.lost")
    assert [name in shown for name in names] == [True, False, False]
    assert [name in folded for name in names] == [False, True, True]
    assert ("Drain test.left" in folded, "Drain guest.lost" in folded) == (True, False)


@pytest.mark.parametrize(("serves", "device"), [("listed", "cpu"), ("new", "cuda")])
def test_a_runners_command_names_a_device_that_its_token_serves(
    admin: User, client: Client, serves: str, device: str
) -> None:
    client.force_login(admin)
    form = {"name": "lab-7", "serves": serves, "devices": [make.make_cpu().pk]}
    page = client.post("/operate/runners/add/", form).content.decode()
    assert f"--device {device}" in page
