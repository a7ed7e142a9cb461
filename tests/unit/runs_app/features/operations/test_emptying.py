"""A queue is emptied by a worker, a batch at a time: nothing twice, nothing too much."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gpu_runner.data.queue import Urgency
from runs_app.core.errors import SubmissionError, WrongState
from runs_app.core.messaging import orders, queues
from runs_app.features.operations import emptying, hooks
from runs_app.features.operations import jobs as site_jobs
from runs_app.features.operations.emptying import Part, cancel_some, empty_queue
from runs_app.features.operations.models import Emptying
from runs_app.models import Evaluation, Run, Status
from runs_app.submitting.quota import quota
from tasks_app.models import AuditEntry, TaskVersion
from tests import factories as make

pytestmark = pytest.mark.django_db

PATH = "/operate/queues/cpu/empty/"


@pytest.fixture(autouse=True)
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    keys: list[int] = []
    for module, name in ((orders, "enqueue"), (orders, "drop"), (queues, "enqueue_advance")):
        monkeypatch.setattr(module, name, lambda *arguments: True)
    monkeypatch.setattr(emptying, "enqueue_emptying", lambda key: keys.append(int(key)) or True)
    return keys


@pytest.fixture
def admin() -> User:
    return make.make_admin(username="judge")


def wish(admin: User, part: Part = Part.PEOPLE, **options: Any) -> Emptying:
    fields = {"parts": [part], "reason": "a flood", "now": make.later(1), **options}
    return empty_queue(device=make.make_cpu(), user=admin, **fields)


def finish(row: Emptying) -> Emptying:
    """Do what workers do, to the end."""
    while cancel_some(emptying_id=row.pk, now=make.later(2)):
        pass
    row.refresh_from_db()
    return row


def wait(count: int, version: TaskVersion | None = None) -> list[Evaluation]:
    version = version or make.make_task_version()
    return [make.make_evaluation(task_version=version) for _ in range(count)]


def statuses(rows: list[Evaluation]) -> list[str]:
    keys = [row.pk for row in rows]
    found = dict(Evaluation.objects.filter(pk__in=keys).values_list("pk", "status"))
    return [found[key] for key in keys]


def test_each_job_ends_with_the_reason_and_nobody_pays(
    admin: User, client: Client, django_capture_on_commit_callbacks: Any, enqueued: list[int]
) -> None:
    version = make.make_task_version()
    author = make.make_user()
    mine = make.make_evaluation(user=author, task_version=version)
    running = make.make_evaluation(user=author, task_version=version)
    make.start(running)
    shipped = make.make_evaluation(task_version=version)
    Evaluation.objects.filter(pk=shipped.pk).update(queue_place=Urgency.BACKGROUND.place)
    used = quota(author, make.NOW).today
    client.force_login(admin)
    assert "People: 1 waiting" in client.get(PATH).content.decode()
    for wrong in ({"reason": "x"}, {"parts": "people"}, {"parts": "everything", "reason": "x"}):
        assert client.post(PATH, wrong).status_code == 422
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(PATH, {"parts": "people", "reason": "a flood"})
    assert answer.status_code == 302
    row = Emptying.objects.get()
    assert enqueued == [row.pk]
    assert statuses([mine]) == [Status.QUEUED], "the request itself cancels nothing"
    site_jobs.empty_queue(str(row.pk))
    mine.refresh_from_db()
    assert (mine.status, "a flood" in mine.reason) == (Status.CANCELLED, True)
    assert statuses([running, shipped]) == [Status.RUNNING, Status.QUEUED]
    assert quota(author, make.NOW).today == used - 1
    page = client.get(f"/submissions/{mine.submission_id}/").content.decode()
    assert "a flood" in page
    entry = AuditEntry.objects.get(kind="emptied")
    assert (entry.actor, entry.reason) == (admin, "a flood")
    assert entry.details["waiting"] == {"people": 1}
    assert client.get("/operate/queues/nowhere/empty/").status_code == 404


def test_what_is_queued_after_the_wish_stays(admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emptying, "BATCH", 1)
    version = make.make_task_version()
    before = wait(2, version)
    row = wish(admin)
    assert cancel_some(emptying_id=row.pk, now=make.later(2))
    after = make.make_evaluation(task_version=version)
    Evaluation.objects.filter(pk=after.pk).update(queued_at=make.later(1.5))
    finish(row)
    assert statuses([*before, after]) == [Status.CANCELLED, Status.CANCELLED, Status.QUEUED]
    assert row.cancelled == row.waiting == 2


def test_a_worker_that_was_killed_costs_nothing(
    admin: User, monkeypatch: pytest.MonkeyPatch, enqueued: list[int]
) -> None:
    monkeypatch.setattr(emptying, "BATCH", 2)
    rows = wait(4)
    row = wish(admin)
    assert cancel_some(emptying_id=row.pk, now=make.later(2))
    cancelled, whole = [], emptying.lifecycle.cancel

    def dies_at_the_second(job: Evaluation, **options: Any) -> None:
        if cancelled:
            raise KeyboardInterrupt
        cancelled.append(job)
        whole(job, **options)

    with monkeypatch.context() as patch:
        patch.setattr(emptying.lifecycle, "cancel", dies_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            cancel_some(emptying_id=row.pk, now=make.later(3))
    row.refresh_from_db()
    assert row.cancelled == statuses(rows).count(Status.CANCELLED) == 2
    hooks.look_after(None, now=make.later(20))
    assert enqueued == [], "it may still be at work"
    for _ in range(2):
        hooks.look_after(None, now=make.later(40))
    assert enqueued == [row.pk]
    finish(row)
    assert (row.cancelled, statuses(rows)) == (4, [Status.CANCELLED] * 4)
    assert not cancel_some(emptying_id=row.pk, now=make.later(50))
    assert not cancel_some(emptying_id=12345, now=make.later(50))
    hooks.look_after(None, now=make.later(900))
    assert enqueued == [row.pk]


def test_one_at_a_time(admin: User, client: Client) -> None:
    wait(1)
    with pytest.raises(SubmissionError, match="only admins"):
        wish(make.make_user())
    row = wish(admin)
    with pytest.raises(WrongState, match="already being emptied"):
        wish(admin)
    client.force_login(admin)
    answer = client.post(PATH, {"parts": "people", "reason": "again"})
    assert answer.status_code == 422
    assert "Being emptied: 0 of 1" in client.get("/operate/").content.decode()
    finish(row)
    wish(admin, now=make.later(3))


def test_runs_are_paused_first(admin: User) -> None:
    run = make.make_run()
    candidate = make.make_evaluation(task_version=run.task_version)
    make.give_to_run(candidate.submission, run)
    finish(wish(admin, Part.RUNS))
    run.refresh_from_db()
    assert (run.status, statuses([candidate])) == (Run.Status.PAUSED, [Status.CANCELLED])


def test_audits_and_background_are_apart(admin: User) -> None:
    audit, own = wait(2)
    Evaluation.objects.filter(pk=audit.pk).update(queue_place=Urgency.AUDITS.place)
    Evaluation.objects.filter(pk=own.pk).update(queue_place=Urgency.BACKGROUND.place)
    assert finish(wish(admin, Part.BACKGROUND)).cancelled == 1
    assert statuses([audit, own]) == [Status.QUEUED, Status.CANCELLED]


def test_what_ranks_an_entry_goes_with_runs(admin: User) -> None:
    (final,) = wait(1)
    Evaluation.objects.filter(pk=final.pk).update(queue_place=Urgency.RUNS.place)
    assert finish(wish(admin, Part.BACKGROUND)).cancelled == 0
    assert finish(wish(admin, Part.RUNS, now=make.later(3))).cancelled == 1
