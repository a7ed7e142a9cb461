"""Checks of task versions: who may have them, what runners report of them, and that all end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import DeviceKind
from runs_app.core.checks.selectors import check_reason, check_stage, check_time, find_check
from runs_app.core.checks.services import cancel_check, request_check
from runs_app.core.messaging import orders
from runs_app.models import Status, TaskCheck
from tasks_app.errors import CurationError
from tasks_app.models import AuditEntry, Draft, Soundness, TaskVersion
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

WRONG = {
    "name": "zeros", "direction": "forward", "state": "failed", "workload": "n256", "scaled": 9.0,
}  # fmt: skip
RIGHT = {"name": "reference", "direction": "forward", "workload": "n256", "scaled": 0.25}
FILTER = {
    "name": "input impact: x", "direction": "forward", "workload": "n256", "value": 1.0,
    "limit": "1", "passed": True, "text": "another x makes the result wrong",
}  # fmt: skip


def a_version(**task: Any) -> TaskVersion:
    return make.make_task_version(**task)


def a_draft(version: TaskVersion, author: User, **columns: Any) -> Draft:
    fields = {"name": version.task.slug, "task": version.task, "files": {"task.toml": ""}}
    fields |= {"created_at": make.NOW, "changed_at": make.NOW}
    draft = Draft.objects.create(version=version, author=author, **{**fields, **columns})
    draft.versions.add(version)
    return draft


def ask(user: User | None = None, version: TaskVersion | None = None) -> TaskCheck:
    user, version = user or make.make_admin(), version or a_version()
    return request_check(version=version, device=make.make_cpu(), user=user, now=make.NOW)


def report(check: TaskCheck, **changes: Any) -> dict[str, Any]:
    task = check.version.data
    document = {
        "task": task.name, "digest": task.digest(), "device": check.device_id, "passed": True,
        "survivors": [], "mutants": [WRONG], "honest": [RIGHT], "filters": [FILTER],
    }  # fmt: skip
    return document | changes


def send(check: TaskCheck, kind: EventKind, payload: dict[str, Any], **changes: Any) -> None:
    make.send(check, kind, payload, **changes)
    check.refresh_from_db()


class TestAsking:
    def test_it_is_asked_for_once(
        self, jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        admin, version = make.make_admin(), a_version()
        with django_capture_on_commit_callbacks(execute=True):
            check = ask(admin, version)
            again = ask(make.make_admin(), version)
        assert again == check
        assert jobs.enqueued == [f"check-{check.pk}-1"]
        entry = AuditEntry.objects.get(kind=AuditEntry.Kind.CHECKED)
        assert (entry.actor, entry.version, entry.name) == (admin, version, "scale")
        assert entry.details == {"device": "CPU", "check": str(check.pk)}
        request = orders.order_of(check).request
        assert (request["check_id"], request["attempt"]) == (str(check.pk), 1)
        assert request["task"] == version.document

    def test_who_is_no_admin_has_one_at_a_time_and_of_an_own_draft(self) -> None:
        author = make.make_user()
        versions = [a_version(name=name) for name in ("first", "second")]
        for version in versions:
            with pytest.raises(CurationError, match="only admins and the draft's author"):
                ask(author, version)
            a_draft(version, author, taken_by=make.make_admin())
            a_draft(version, author, state=Draft.State.CLOSED)
            with pytest.raises(CurationError):  # a draft that was taken over gives no right
                ask(author, version)
            a_draft(version, author)
        check = ask(author, versions[0])
        assert ask(author, versions[0]) == check
        with pytest.raises(CurationError, match="your check of first v1 on CPU is under way"):
            ask(author, versions[1])
        cancel_check(check=check, user=author, now=make.NOW)
        assert ask(author, versions[1]).status == Status.QUEUED
        admin = make.make_admin()
        assert ask(admin, versions[0]) != check
        assert TaskCheck.objects.filter(status=Status.QUEUED).count() == 2

    def test_who_is_no_admin_has_so_many_minutes_a_day(self, settings: Any) -> None:
        settings.MAX_CHECK_MINUTES_PER_DAY = 3
        author, version = make.make_user(), a_version()
        a_draft(version, author)
        cancel_check(check=ask(author, version), user=author, now=make.NOW)
        assert check_time(author, make.NOW).left == 2
        make.start(held := ask(author, version))
        send(held, EventKind.FINISHED, {"reason": "failed"}, seq=2, now=make.later(100))
        assert check_time(author, make.NOW).left == 0
        with pytest.raises(CurationError, match="used 3 minutes of device time"):
            ask(author, version)
        assert ask(make.make_admin(), version).status == Status.QUEUED
        assert check_time(author, make.later(25 * 3600)).left == 3

    def test_a_device_for_which_the_task_has_no_workload_is_refused(self) -> None:
        known = make.make_task().workloads
        workloads = tuple(replace(workload, devices=(DeviceKind.CUDA,)) for workload in known)
        with pytest.raises(CurationError, match="no listed forward workload") as refusal:
            ask(version=a_version(workloads=workloads))
        assert refusal.value.field == "device"
        assert not TaskCheck.objects.exists()

    def test_the_asker_and_admins_cancel_it(
        self, jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        check = ask()
        with pytest.raises(CurationError, match="only admins and the person who requested"):
            cancel_check(check=check, user=make.make_user(), now=make.NOW)
        make.start(check)
        admin = make.make_admin(username="ada")
        with django_capture_on_commit_callbacks(execute=True):
            cancel_check(check=check, user=admin, now=make.later(5))
        assert jobs.dropped == [f"check-{check.pk}-1"]
        send(check, EventKind.FINISHED, {"report": report(check)}, seq=2)
        assert (check.status, check.reason) == (Status.CANCELLED, "canceled by an admin")
        assert (check.finished_at, check.passed) == (make.later(5), None)
        entry = AuditEntry.objects.get(kind=AuditEntry.Kind.CANCELLED)
        assert (entry.actor, entry.version) == (admin, check.version)
        assert entry.details["device"] == "CPU"
        assert not Soundness.objects.exists()
        with pytest.raises(CurationError, match="already canceled"):
            cancel_check(check=check, user=admin, now=make.NOW)


class TestEvents:
    def test_a_check_runs_and_its_report_is_the_versions(self) -> None:
        make.make_runner(name="host-1", boot_id="boot-7")
        check = ask()
        make.start(check, runner="host-1", now=make.later(1))
        assert (str(check.runner), check.runner_boot_id) == ("test.host-1", "boot-7")
        stage = {"detail": "forward n256: 3 wrong kernels decided", "elapsed_s": 1.0}
        send(check, EventKind.STAGE, stage, seq=2)
        assert check.stage == stage["detail"]
        send(check, EventKind.ALIVE, {"runner": "host-1"}, seq=3, now=make.later(40))
        assert (check.last_event_at, check.started_at) == (make.later(40), make.later(1))
        send(check, EventKind.FINISHED, {"report": report(check)}, seq=4, now=make.later(50))
        assert (check.status, check.passed, check.reason) == (Status.FINISHED, True, "")
        assert check.finished_at == make.later(50)
        assert check.version.unproven == ""
        assert check.version.reports.get().device == "cpu"
        again = ask(version=check.version)
        mutants = [{**WRONG, "scaled": float("inf")}]  # a number that JSON does not have
        document = report(again, survivors=["forward: zeros"], passed=False, mutants=mutants)
        send(again, EventKind.FINISHED, {"report": document}, seq=1)
        assert (again.status, again.passed) == (Status.FINISHED, False)
        assert "1 of 1 wrong kernels pass it" in again.version.unproven
        assert again.version.reports.get().document["mutants"][0]["scaled"] == "inf"

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"digest": "0" * 64}, "digest: is '000"),
            ({"task": "other"}, "task: is 'other', expected 'scale'"),
            ({"device": "nvidia-h200"}, "device: is 'nvidia-h200'"),
            ({"passed": "yes"}, "passed: is not a bool"),
            ({"mutants": [{}]}, "mutants"),
            ({"honest": [{**RIGHT, "scaled": 10**400}]}, "too large"),
            ({"filters": 7}, "filters: is not a list"),
            ({"padding": "x" * 4_200_000}, "is larger than"),
        ],
    )
    def test_a_report_of_something_else_ends_it(self, changes: dict[str, Any], words: str) -> None:
        check = ask()
        send(check, EventKind.FINISHED, {"report": report(check, **changes)}, seq=1)
        assert (check.status, check.passed) == (Status.FINISHED, None)
        assert check.reason.startswith("its runner's report cannot be used: ")
        assert words in check.reason
        assert not Soundness.objects.exists()

    def test_an_end_without_a_report_says_why(self) -> None:
        for payload, words in (
            ({"report": [1]}, "is not a JSON object"),
            ({}, "neither a report nor a reason"),
            ({"reason": "the task's code failed in 'load': \0 boom"}, "\ufffd boom"),
        ):
            check = ask()
            send(check, EventKind.FINISHED, payload, seq=1)
            assert (check.status, check.passed, words in check.reason) == ("FINISHED", None, True)

    def test_the_database_refuses_an_end_without_report_and_reason(self) -> None:
        rows = TaskCheck.objects.filter(pk=ask().pk)
        for change in ({"status": "FINISHED", "finished_at": make.NOW}, {"passed": True}):
            with pytest.raises(IntegrityError), transaction.atomic():
                rows.update(**change)


class TestDisclosure:
    def test_reason_and_stage_are_for_those_who_see_hidden_workloads(self) -> None:
        version, author, owner = a_version(), make.make_user(), make.make_user()
        a_draft(version, author, taken_by=make.make_admin())
        a_draft(version, owner)
        check = ask(version=version)
        send(check, EventKind.STAGE, {"detail": f"forward {make.HIDDEN_WORKLOAD}"}, seq=1)
        assert check_stage(check, author) == "forward a hidden workload"
        for user in (admin := make.make_admin(), owner, check.asked_by):
            assert make.HIDDEN_WORKLOAD in check_stage(check, user)
        send(check, EventKind.FINISHED, {"reason": "no such size as 1777"}, seq=2)
        assert check_stage(check, admin) == ""
        for user in (admin, owner, check.asked_by):
            assert check_reason(check, user) == "no such size as 1777"
            assert find_check(check.pk, user) == check
        assert "1777" not in check_reason(check, author)
        assert find_check(check.pk, author) == check
        for stranger in (make.make_user(), AnonymousUser()):
            assert "1777" not in check_reason(check, stranger)
            assert find_check(check.pk, stranger) is None


class TestQueuePage:
    def test_it_shows_what_runs_and_waits_and_of_which_task_to_some(self, client: Client) -> None:
        make.make_runner(name="host-1", seen_at=timezone.now())
        version, author = a_version(name="doubling"), make.make_user()
        draft = a_draft(version, author)
        running, waiting = ask(author, version), ask(version=a_version(name="halving"))
        make.start(running, runner="host-1")
        send(running, EventKind.STAGE, {"detail": "forward n256"}, seq=2)
        send(waiting, EventKind.LOST, {"reason": "its runner died"}, seq=1)
        stranger = client.get("/queue/").content.decode()
        assert stranger.count("a draft") == 2
        for word in ("doubling", "halving", "forward n256", "its runner died", str(author)):
            assert word not in stranger
        client.force_login(author)
        page = client.get("/queue/").content.decode()
        assert f'<a href="{draft.get_absolute_url()}">doubling v1</a>' in page
        assert "forward n256 on" in page
        assert "halving" not in page
        client.force_login(make.make_admin())
        page = client.get("/queue/").content.decode()
        assert "retried: its runner died" in page
        assert page.index("doubling v1") < page.index("halving v1")
