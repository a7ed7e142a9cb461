"""Who is told of what, by which ways, and what they see of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

from gpu_runner.data.integrity import AuditState
from gpu_runner.data.verdict import Verdict
from kbench_web.accounts.names import delete_account
from runs_app.core.hooks import place_changed
from runs_app.core.integrity.quarantine import decide
from runs_app.core.messaging import orders, queues
from runs_app.features.notices import delivery, services
from runs_app.features.notices.models import (
    Delivery,
    Notice,
    NoticeKind,
    NoticeSettings,
    Watch,
    Way,
    Webhook,
)
from runs_app.models import Evaluation
from runs_app.optimiser.services.control import pause_run
from tasks_app.models import TaskVersion
from tests import factories as make
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, case_of, end_audit, held, ranked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    ids: list[int] = []
    for module, name in ((orders, "enqueue"), (orders, "drop"), (queues, "enqueue_advance")):
        monkeypatch.setattr(module, name, lambda *arguments: True)
    monkeypatch.setattr(services, "enqueue_delivery", lambda pk: ids.append(pk) or True)
    return ids


def texts(user: User) -> list[str]:
    return list(Notice.objects.filter(user=user).order_by("pk").values_list("text", flat=True))


def result(user: User, latency_ns: float = 1000.0, **fields: Any) -> Evaluation:
    evaluation = make.make_finished_evaluation(mode="ranked", user=user, **fields)
    score = 1500.0 / latency_ns
    values = {"latency_ns": latency_ns, "score": score, "merit": score, "score_spread": 0.01}
    Evaluation.objects.filter(pk=evaluation.pk).update(**values)
    evaluation.refresh_from_db()
    return evaluation


class TestVerdicts:
    def test_a_ranked_verdict_is_told_to_its_author_without_hidden_names(self) -> None:
        ada = make.make_user()
        make.make_finished_evaluation(mode="quick", user=ada)
        assert texts(ada) == []
        evaluation = make.make_finished_evaluation(mode="ranked", user=ada)
        assert texts(ada)[0].startswith("scale on CPU: correct")
        assert Notice.objects.filter(user=ada)[0].url == f"/submissions/{evaluation.submission_id}/"
        assert texts(ada)[0].endswith("the speed of the best baseline, before any audit")
        wrong = {"reason": f"wrong on {make.HIDDEN_WORKLOAD}"}
        make.make_finished_evaluation(Verdict.WRONG_RESULT, wrong, mode="ranked", user=ada)
        assert "wrong result" in texts(ada)[1]
        held(user=ada)
        assert "in quarantine" in texts(ada)[2]
        decide(
            case=case_of(Evaluation.objects.get(quarantine="open")), user=make.make_admin(),
            state="rejected", reason="it cheats", now=make.NOW,
        )  # fmt: skip
        assert "rejected" in texts(ada)[3]
        NoticeSettings.objects.create(user=ada, verdict=Way.OFF)
        make.make_finished_evaluation(mode="ranked", user=ada)
        assert len(texts(ada)) == 4

    def test_a_speedup_over_eager_alone_is_told_as_provisional(self) -> None:
        ada = make.make_user()
        result = {"speedups": {"eager": 2.0, "best": 2.0}, "pending_baselines": ("compiled",)}
        make.make_finished_evaluation(mode="ranked", user=ada, result=result)
        assert "the baselines known so far (eager), provisionally" in texts(ada)[0]


class TestPlaces:
    def test_who_led_and_who_watches_are_told(self) -> None:
        ada, eve, fan = make.make_user(), make.make_user(username="eve"), make.make_user()
        before = result(ada, 1000.0)
        task = before.task_version.task
        for watched in ({"task": task}, {"device": before.device}):
            services.set_watch(user=fan, on=True, now=make.NOW, **watched)
        after = result(eve, 500.0, task_version=TaskVersion.objects.get())
        Notice.objects.all().delete()
        place_changed.send(Evaluation, before=before, after=after, now=make.NOW)
        assert "eve took first place" in texts(ada)[0]
        assert len(texts(fan)) == 1
        assert texts(eve) == []

    def test_a_tie_takes_no_place(self) -> None:
        ada, eve = make.make_user(), make.make_user()
        before = result(ada, 1000.0)
        after = result(eve, 995.0, task_version=TaskVersion.objects.get())
        Notice.objects.all().delete()
        place_changed.send(Evaluation, before=before, after=after, now=make.NOW)
        place_changed.send(Evaluation, before=before, after=before, now=make.NOW)
        assert not Notice.objects.exists()
        Evaluation.objects.all().delete()
        result(ada, 1_000_000.0, task_version=TaskVersion.objects.get())
        fields = {"mode": "ranked", "task_version": TaskVersion.objects.get()}
        make.make_finished_evaluation(user=eve, **fields)  # which is faster, and tells it by itself
        assert any("took first place" in text for text in texts(ada))

    def test_who_led_with_what_no_longer_counts_is_told(self) -> None:
        ada, eve = make.make_user(), make.make_user()
        result(eve, 2000.0)
        led = ranked(user=ada, task_version=TaskVersion.objects.get(), source="// mine")
        Notice.objects.all().delete()
        end_audit(led, replace(MEMCHECK, state=AuditState.FAILED, reason="reads too far"))
        assert "no longer counts" in texts(ada)[-1]


class TestRuns:
    def test_an_admins_pause_is_told_but_not_ones_own(self) -> None:
        own, others = make.make_run(), None
        pause_run(run=own, user=own.user, now=make.NOW)
        assert texts(own.user) == []
        others = make.make_run(task_version=own.task_version)
        fan = make.make_user()
        services.set_watch(user=fan, on=True, now=make.NOW, run=others)
        pause_run(run=others, user=make.make_admin(), now=make.NOW)
        assert "paused by an admin" in texts(others.user)[0]
        assert len(texts(fan)) == 1

    def test_a_private_run_is_watched_by_nobody_else(self, client: Client) -> None:
        run = make.make_run(private=True)
        client.force_login(make.make_user())
        assert client.post("/notices/watch/", {"run": run.pk, "on": "1"}).status_code == 404
        assert client.get(f"/feeds/runs/{run.pk}.atom").status_code == 404
        client.force_login(run.user)
        assert client.post("/notices/watch/", {"run": run.pk, "on": "1"}).status_code == 302


class TestPages:
    def test_the_count_goes_with_reading(
        self, client: Client, django_assert_max_num_queries: Any
    ) -> None:
        ada = make.make_user()
        services.tell([ada], NoticeKind.WATCHED, "one", "/tasks/", now=make.NOW)
        services.tell([ada], NoticeKind.WATCHED, "<b>two</b>", "/runs/", now=make.NOW)
        client.force_login(ada)
        text = client.get("/notices/").content.decode()
        assert 'aria-label="Notices: 2 unread"' in text
        assert "&lt;b&gt;two" in text
        newest = Notice.objects.filter(user=ada)[0]
        stranger = Client()
        stranger.force_login(make.make_user())
        assert stranger.post(f"/notices/{newest.pk}/open/").status_code == 404
        assert client.post(f"/notices/{newest.pk}/open/")["Location"] == "/runs/"
        assert Notice.objects.filter(user=ada, read_at=None).count() == 1
        for _ in range(40):
            services.tell([ada], NoticeKind.RUN, "x", "/", now=make.NOW)
        with django_assert_max_num_queries(9):
            client.get("/notices/")
        client.post("/notices/read/")
        assert Notice.objects.filter(user=ada, read_at=None).count() == 0

    def test_watching_is_switched_and_leads_back(self, client: Client) -> None:
        version = make.make_task_version()
        ada = make.make_user()
        client.force_login(ada)
        fields = {"task": "scale", "on": "1", "next": "/tasks/scale/"}
        assert client.post("/notices/watch/", fields)["Location"] == "/tasks/scale/"
        client.post("/notices/watch/", fields)
        assert Watch.objects.get().task == version.task
        assert "Watching this" in client.get("/tasks/scale/").content.decode()
        evil = fields | {"on": "0", "next": "https://evil.example/"}
        assert client.post("/notices/watch/", evil)["Location"] == "/notices/"
        assert not Watch.objects.exists()

    def test_deletion_takes_them_along(self) -> None:
        ada = make.make_user()
        services.tell([ada], NoticeKind.RUN, "x", "/", now=make.NOW)
        services.set_watch(user=ada, on=True, now=make.NOW, device=make.make_cpu())
        Webhook.objects.create(user=ada, url="https://a.example/", salt="x", created_at=make.NOW)
        delete_account(user=ada, now=make.NOW)
        for model in (Notice, Watch, Webhook):
            assert not model._default_manager.exists()


class TestFeeds:
    def test_what_everybody_may_see_is_in_them(self, client: Client) -> None:
        ada = make.make_user(username="ada")
        public = result(ada)
        hidden = result(ada, task_version=TaskVersion.objects.get(), private=True)
        run = make.make_run(task_version=public.task_version)
        pause_run(run=run, user=run.user, now=make.NOW)
        for path in ("/feeds/tasks/scale.atom", "/feeds/boards/cpu.atom",
                     "/feeds/boards/cpu.atom?task=scale"):  # fmt: skip
            answer = client.get(path)
            text = answer.content.decode()
            assert answer["Content-Type"].startswith("application/atom+xml")
            assert str(public.submission_id) in text
            assert str(hidden.submission_id) not in text
        assert "paused" in client.get(f"/feeds/runs/{run.pk}.atom").content.decode()
        for path in ("/feeds/tasks/no.atom", "/feeds/boards/no.atom",
                     "/feeds/boards/cpu.atom?task=no"):  # fmt: skip
            assert client.get(path).status_code == 404


class TestEmail:
    @pytest.fixture(autouse=True)
    def _with_email(self, settings: Any) -> None:
        settings.EMAIL_CONFIGURED = True
        settings.SITE_URL = "https://kbench.example"

    def test_what_is_urgent_is_sent_at_once(self) -> None:
        ada = make.make_user(email="ada@a.example")
        silent = make.make_user()
        services.tell([ada, silent], NoticeKind.PLACE, "Taken.", "/runs/", now=make.NOW)
        row = Delivery.objects.get()
        assert delivery.deliver(delivery_id=row.pk, now=make.NOW)
        assert not delivery.deliver(delivery_id=row.pk, now=make.later(60))
        [message] = mail.outbox
        assert (message.to, message.subject) == (["ada@a.example"], "kbench: Taken.")
        assert "https://kbench.example/runs/" in str(message.body)
