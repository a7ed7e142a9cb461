"""Which job a runner is handed, which ones it never gets, and whom an audit waits for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from pytest_django import DjangoCaptureOnCommitCallbacks

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.event import EventKind
from gpu_runner.data.order import Order
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode
from runs_app.core.runners import handing
from runs_app.core.runners.handing import hand_over
from runs_app.core.work import lifecycle
from runs_app.models import Evaluation, Runner, RunnerJob, Status
from tests import factories as make
from tests.unit.queued import Jobs
from tests.unit.runs_app.core.runners import asking
from tests.unit.runs_app.core.runners.asking import audit_of, evaluation, given, guest, name, names

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

TICKET = "0123456789abcdef" * 2


def test_an_order_holds_all_that_a_runner_needs(job: RunnerJob) -> None:
    runner = make.make_runner(name="host-1", boot_id="boot-7")
    order = given(runner, make.later(5), ticket=TICKET)
    assert order is not None
    assert (order.kind, order.job_id, order.attempt) == (job.KIND, str(job.pk), 1)
    assert order.timeout_s == settings.JOB_TIMEOUT_S
    version = job.task_version if isinstance(job, Evaluation) else job.version  # type: ignore[attr-defined]
    assert order.request["task"] == version.document
    if isinstance(job, Evaluation):
        assert codec.decode(EvaluationRequest, order.request) == job.request()
    job.refresh_from_db()
    assert (job.status, job.runner, job.runner_boot_id) == (Status.RUNNING, runner, "boot-7")
    assert (job.ticket, job.started_at) == (TICKET, make.later(5))
    assert codec.decode(Order, codec.encode(order)) == order


def test_the_same_ticket_gets_the_same_job_as_long_as_it_is_held(job: RunnerJob) -> None:
    runner = make.make_runner()
    first = given(runner, ticket=TICKET)
    assert given(runner, make.later(30), ticket=TICKET) == first
    assert first is not None
    assert given(runner) is None  # another ticket, and nothing waits
    job.refresh_from_db()
    assert job.started_at == make.NOW
    make.send(job, EventKind.LOST, {"reason": "it died"}, seq=1)
    again = given(runner, make.later(60), ticket=TICKET)
    assert names(again) == [f"{job.KIND}-{job.pk}-2"]
    # a ticket is its runner's own
    assert given(make.make_runner(), ticket=TICKET) is None
    assert given(guest(name=runner.own_name), ticket=TICKET) is None
    Runner.objects.filter(pk=runner.pk).update(boot_id="boot-2")
    runner.refresh_from_db()
    assert given(runner, ticket=TICKET) is None


def test_who_may_not_have_it_gets_nothing(job: RunnerJob) -> None:
    runner, other = make.make_runner(name="host-1"), make.make_runner_token(name="other")
    for ask in ({"device": "nvidia-h200"}, {"boot_id": "boot-0"}, {"runner": "host-2"}):
        assert given(runner, **ask) is None  # not of this runner
    assert given(runner, urgencies=()) is None
    for says in ({}, {"runner": runner.name}):  # of another token
        assert hand_over(token=other, ask=make.make_ask(runner, **says), now=make.NOW) is None
    cuda = make.make_runner(device=make.make_device())
    for ask in ({}, {"device": "cpu"}, {"job": name(job)}, {"job": name(job), "device": "cpu"}):
        assert given(cuda, **ask) is None
    for state in ({"state": "stopped"}, {"wanted": "drain"}, {"wanted": "disable"}):
        held = make.make_runner(**state, wanted_reason="fan" if "wanted" in state else "")
        assert given(held) is given(held, job=name(job)) is None
    revoked = make.make_runner(token=other)
    type(other).objects.filter(pk=other.pk).update(revoked_at=make.NOW)
    assert revoked.token.revoked_at is given(revoked) is None  # its reader does not know it yet
    job.refresh_from_db()
    assert (job.status, job.runner) == (Status.QUEUED, None)
    assert given(runner) is not None


def test_the_most_urgent_goes_first_and_of_these_the_oldest() -> None:
    runner, version = make.make_runner(), make.make_task_version()
    background = evaluation(1, queue_place=Urgency.BACKGROUND.place)
    audit = evaluation(6, mode="audit", queue_place=Urgency.AUDITS.place)
    candidate = evaluation(2)
    make.give_to_run(candidate.submission)
    measurement = asking.baselines(version)
    late, early = evaluation(3, now=make.later(9)), evaluation(4, now=make.later(3))
    checked = asking.check(version, make.later(5))
    build = evaluation(5, queue_place=Urgency.BUILDS.place, now=make.later(10))
    expected = [build, early, checked, late, candidate, measurement, audit, background]
    found = names(*(given(runner) for _ in range(9)))
    assert found == [name(row) for row in expected]


def test_a_run_waits_for_its_candidates_and_people_for_the_rest() -> None:
    plain, candidate = make.make_submission(), make.make_submission()
    make.give_to_run(candidate)
    for submission, mode, urgency in (
        (plain, Mode.COMPILE, Urgency.BUILDS),
        (plain, Mode.RANKED, Urgency.PEOPLE),
        (candidate, Mode.COMPILE, Urgency.RUNS),
        (candidate, Mode.RANKED, Urgency.RUNS),
    ):
        row = lifecycle.evaluate(
            submission=submission, device=make.make_cpu(), mode=mode, now=make.NOW
        )
        assert row.urgency is urgency
        found = [each for each in Urgency if row in Evaluation.objects.filter(row.waits_as(each))]
        assert found == [urgency]


def test_a_slot_gets_what_it_takes_alone() -> None:
    runner, row = make.make_runner(), evaluation(queue_place=Urgency.BACKGROUND.place)
    asking.check(row.task_version)
    assert given(runner, urgencies=(Urgency.BUILDS, Urgency.RUNS)) is None
    assert names(given(runner, urgencies=(Urgency.BACKGROUND,))) == [name(row)]


def test_what_was_asked_for_by_name_comes_though_others_are_older() -> None:
    runner, rows = make.make_runner(), [evaluation(number) for number in range(3)]
    assert names(given(runner, job=name(rows[2]))) == [name(rows[2])]
    assert names(given(runner, job=name(rows[2]))) == [name(rows[0])]  # it is gone: the next one
    assert names(given(runner, job=f"evaluation-{rows[1].pk}-2")) == [name(rows[1])]
    assert Evaluation.objects.filter(status=Status.QUEUED).count() == 0
    for no_job in ("evaluation-not-an-id-1", "evaluation-1", "lunch-1-1"):
        with pytest.raises(DataError, match="is no"):
            given(runner, job=no_job)


def test_a_runner_holds_so_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing, "MOST_AT_ONCE", 2)
    runner, rows = make.make_runner(), [evaluation(number) for number in range(3)]
    assert names(*(given(runner) for _ in range(3))) == [name(row) for row in rows[:2]]
    make.send(rows[0], EventKind.LOST, {"reason": "it died"}, seq=1)
    assert given(runner) is not None


def test_so_do_all_hosts_of_a_token_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing, "MOST_OF_TOKEN", 2)
    rows = [evaluation(number) for number in range(3)]
    hosts = [make.make_runner() for _ in rows]
    assert names(*map(given, hosts)) == [name(row) for row in rows[:2]]
    other = make.make_runner(token=make.make_runner_token(name="other"))
    assert names(given(other)) == [name(rows[2])]


class TestLost:
    """A job that a runner has lost goes to somebody else's."""

    def lost(self, job: RunnerJob, runner: Runner) -> RunnerJob:
        make.hand_over(job, runner.own_name)
        make.send(job, EventKind.LOST, {"reason": "it died"}, seq=1)
        job.refresh_from_db()
        assert job.lost_by == runner.token
        return job

    def test_so_one_that_loses_all_ends_none(self, job: RunnerJob) -> None:
        mine = make.make_runner()
        other = make.make_runner(token=make.make_runner_token(name="other"))
        same_token = make.make_runner(token=mine.token)
        self.lost(job, mine)
        for runner in (mine, same_token):
            assert given(runner) is None
            assert given(runner, job=name(job)) is None
        assert names(given(other)) == [name(job)]

    def test_unless_nobody_else_is_there_for_ten_minutes(self, job: RunnerJob) -> None:
        mine = make.make_runner()
        token = make.make_runner_token(name="other")
        for state in ({"state": "unfit"}, {"wanted": "drain"}, {"seen_at": make.later(-40)}):
            make.make_runner(token=token, **state)
        make.make_runner(token=token, device=make.make_device())
        self.lost(job, mine)
        assert names(given(mine)) == [name(job)]
        make.make_runner(token=token, seen_at=make.later(601))
        job.refresh_from_db()
        make.send(job, EventKind.LOST, {"reason": "it died"}, seq=1)
        job.refresh_from_db()
        assert given(mine, make.later(599)) is None
        assert names(given(mine, make.later(601))) == [name(job)]

    def test_a_check_waits_for_no_guest(self) -> None:
        check = asking.check()
        mine, _ = make.make_runner(), guest()
        self.lost(check, mine)
        assert names(given(mine)) == [name(check)]


class TestGuests:
    def test_a_guest_decides_about_no_task(self) -> None:
        runner, check = guest(), asking.check()
        assert given(runner) is given(runner, job=name(check)) is None
        assert given(runner, make.NOW + timedelta(days=9)) is None
        assert names(given(make.make_runner())) == [name(check)]

    def test_a_guest_audits_nothing_where_a_trusted_runner_is(self) -> None:
        audit, runner = audit_of(), guest()
        Runner.objects.filter(token__trusted=True).delete()
        trusted = make.make_runner(seen_at=make.NOW - timedelta(days=9))  # it may come back
        late = make.NOW + timedelta(days=9)
        assert given(runner, late) is None
        assert given(runner, late, job=name(audit)) is None
        type(trusted.token).objects.filter(pk=trusted.token.pk).update(revoked_at=make.NOW)
        assert names(given(runner, late)) == [name(audit)]
        audit.refresh_from_db()
        assert audit.guest

    def test_a_guest_measures_no_baselines_where_a_trusted_runner_is(self) -> None:
        runner, trusted = guest(), make.make_runner()
        measurement = asking.baselines(make.make_task_version())
        assert given(runner) is None
        trusted.delete()
        make.make_runner(device=make.make_device())  # of another device
        assert names(given(runner)) == [name(measurement)]

    def test_a_guests_measurement_is_marked_as_one_and_a_trusted_runners_is_not(self) -> None:
        rows = [evaluation(number) for number in range(2)]
        for row, runner in zip(rows, (guest(), make.make_runner()), strict=True):
            assert names(given(runner)) == [name(row)]
            row.refresh_from_db()
        assert [row.guest for row in rows] == [True, False]
        Evaluation.objects.filter(pk=rows[0].pk).update(status="QUEUED", attempt=2)
        given(make.make_runner())  # measures it anew
        rows[0].refresh_from_db()
        assert (rows[0].attempt, rows[0].guest) == (2, False)


class TestNames:
    """Of jobs that somebody took out of a queue and may not have."""

    def test_a_name_that_is_for_another_runner_goes_back_to_the_queue(
        self, jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        row = evaluation()
        check = asking.check(row.task_version)
        runner = guest()
        jobs.enqueued.clear()
        with django_capture_on_commit_callbacks(execute=True):
            assert names(given(runner, job=name(check))) == [name(row)]  # it gets another one
        assert jobs.enqueued == [name(check)]
        assert jobs.dropped == [name(row)]  # whose name is in the queue no more

    def test_a_name_of_what_is_over_or_of_an_earlier_attempt_stays_away(self, jobs: Jobs) -> None:
        runner, row = make.make_runner(), evaluation()
        make.finish(row)
        again = evaluation(1)
        Evaluation.objects.filter(pk=again.pk).update(attempt=2)
        urgencies = (Urgency.BUILDS,)
        for old in (name(row), f"evaluation-{again.pk}-1"):
            assert given(runner, job=old, urgencies=urgencies) is None
        assert jobs.enqueued == []


def test_another_runner_than_the_one_that_measured_is_waited_for() -> None:
    measured, other = make.make_runner(), make.make_runner()
    audit = audit_of(measured)
    Runner.objects.filter(pk=other.pk).update(seen_at=make.later(599))
    for wait_s in (0, 599):
        assert given(measured, make.later(wait_s)) is None
        assert given(measured, make.later(wait_s), job=name(audit)) is None
    assert names(given(other, make.later(1))) == [name(audit)]


def test_a_second_host_of_the_same_token_does_not_check_the_first() -> None:
    measured = make.make_runner(seen_at=make.later(9999))
    second = make.make_runner(seen_at=make.later(9999))
    honest = make.make_runner(token=make.make_runner_token(name="honest"), seen_at=make.later(9999))
    audit = audit_of(measured)
    for runner in (measured, second):
        assert given(runner, make.later(9999)) is None
        assert given(runner, make.later(9999), job=name(audit)) is None
    assert names(given(honest, make.later(9999))) == [name(audit)]


def test_another_host_of_the_same_token_is_waited_for_ten_minutes() -> None:
    measured, _ = make.make_runner(), make.make_runner(seen_at=make.later(600))
    audit = audit_of(measured)
    assert given(measured, make.later(599)) is None
    assert names(given(measured, make.later(601))) == [name(audit)]


@pytest.mark.parametrize(
    "state", [{"seen_at": make.later(-40)}, {"state": "unfit"}, {"wanted": "drain"}, None]
)
def test_neither_who_is_not_at_work_nor_a_guest_is_waited_for(state: dict[str, Any] | None) -> None:
    measured, _ = make.make_runner(), make.make_runner(**state) if state else guest()
    audit = audit_of(measured)
    Runner.objects.filter(name="test.nobody").delete()
    assert names(given(measured)) == [name(audit)]
