"""The first page: what happens now, for whom, and what it costs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from gpu_runner.data.verdict import Verdict
from leaderboard_app.boards.records import best_evaluations, leaders, leading, record_of_the_day
from leaderboard_app.boards.selectors import default_device
from leaderboard_app.home.page import best_so_far, boards, live
from runs_app.core.integrity.eligibility import eligible_evaluations, leader
from runs_app.core.integrity.ranking import BY_SCORE, OWNER, ranked_places
from runs_app.models import Agent, Device, Evaluation, Run
from tests import factories
from tests.unit.runs_app.core.integrity.suspicious import held

pytestmark = pytest.mark.django_db


def ranked(
    agent: str, speedup: float, ago: timedelta = timedelta(), **overrides: Any
) -> Evaluation:
    """A ranked result that ended so long ago."""
    result = {"latency_ns": 1500.0 / speedup, "speedups": {"best": speedup}}
    made = factories.make_finished_evaluation(
        result=result, mode="ranked", agent=agent, **overrides
    )
    made.finished_at = timezone.now() - ago
    made.save()
    return made


def test_the_record_is_the_new_leader_furthest_ahead() -> None:
    version = factories.make_task_version()
    ranked("slow", 2.0, timedelta(hours=5), task_version=version)
    best = ranked("fast", 4.0, timedelta(hours=1), task_version=version)
    ranked("other", 3.0, task_version=factories.make_task_version(name="other"))
    assert record_of_the_day(timezone.now(), leading()) is None, "no audit has ended yet"
    factories.pass_audits()
    found = record_of_the_day(timezone.now(), leading())
    assert found is not None
    assert found.evaluation == best
    assert found.of_today
    assert found.gain == pytest.approx(2.0)
    Evaluation.objects.exclude(pk=best.pk).delete()
    best.finished_at -= timedelta(days=3)
    best.save()
    ranked("new", 2.0, task_version=version)  # which does not lead
    factories.pass_audits()
    found = record_of_the_day(timezone.now(), leading())
    assert found is not None
    assert (found.evaluation, found.of_today, found.gain) == (best, False, None)


def test_who_is_audited_as_a_boards_leader_is_shown_as_it() -> None:
    """The better score leads, whatever the time on listed sizes."""
    version = factories.make_task_version()
    fields = {"mode": "ranked", "task_version": version}
    halves = {"speedups": {"best": 4.0}, "unlisted_speedups": {"best": 0.5}}
    result = {"latency_ns": 500.0, **halves}
    factories.make_finished_evaluation(result=result, agent="tuned", **fields)
    quick = factories.make_finished_evaluation(
        result={"latency_ns": 600.0, "speedups": {"best": 3.0}}, agent="general", **fields
    )
    far = ranked("far", 9.0, task_version=factories.make_task_version(name="other"))
    factories.pass_audits()
    ((_, shown),) = leaders(leading())
    assert [entry.evaluation_id for entry in shown] == [str(far.pk), str(quick.pk)]
    assert leader(version, "forward", "cpu") == quick


def test_every_page_names_the_same_leader_of_two_equal_entries() -> None:
    version = factories.make_task_version()
    pair = [ranked(agent, 2.0, task_version=version, now=factories.NOW) for agent in ("a", "b")]
    for keys in (("f", "1"), ("2", "3")):
        for made, digit in zip(pair, keys, strict=True):
            moved(made, UUID(digit * 32))
        first = ranked_places(eligible_evaluations(), OWNER, BY_SCORE)[0].pk
        best = leader(version, "forward", "cpu")
        assert best is not None
        assert [best.pk] == leading() == [first]
        assert list(best_evaluations()) == [best]


def moved(evaluation: Evaluation, key: UUID) -> None:
    """Give an evaluation that key; its result and events go."""
    Evaluation.objects.filter(pk=evaluation.pk).delete()
    evaluation.pk = key
    evaluation.save(force_insert=True)


def test_an_empty_site_shows_the_loop_and_how_to_begin(client: Client) -> None:
    text = client.get("/").content.decode()
    assert reverse("run-start") in text
    assert text.count('class="loop-figure"') == 4
    assert "instrument-record" not in text


@pytest.mark.parametrize("address", ["/", "/runs/"])
def test_invitations_say_if_no_runner_is_connected(client: Client, address: str) -> None:
    starts = "gpu_runner work --device cpu"
    runner = factories.make_runner()  # silent for long
    assert client.get(address).content.decode().count('id="no-runner"') == 1
    client.force_login(factories.make_user(is_staff=True))
    text = client.get(address).content.decode()
    assert (text.count('id="no-runner"'), text.count(starts)) == (1, 1)
    assert "no runner for cpu" not in text, "it is said once"
    runner.seen_at = timezone.now()
    runner.save()
    text = client.get(address).content.decode()
    assert ('id="no-runner"' in text, starts in text) == (False, False)
    assert "submit_shipped_kernels" in text or "kbench run " in text, "what to do first"


def test_without_a_record_the_leader_furthest_ahead_is_shown(client: Client) -> None:
    far = ranked("far", 9.0)
    ranked("near", 2.0, task_version=factories.make_task_version(name="other"))
    text = client.get("/").content.decode()
    record = text.split('class="instrument-record"')[1].split("</section>")[0]
    assert str(far.submission_id) in record
    assert "Provisional" in record
    words = " ".join(text.split())
    assert "All leads are provisional. These kernels are furthest ahead of the baselines" in words
    assert "0 final leaders" in text
    factories.pass_audits()
    text = " ".join(client.get("/").content.decode().split())
    assert "far leads 1 of the 2 tasks" in text


def test_what_is_not_provisional_goes_before_what_is(client: Client) -> None:
    there = ranked("there", 2.0)
    Device.objects.filter(pk=there.device_id).update(imported_from="elsewhere", name="H (imported)")
    factories.pass_audits()
    Device.objects.create(slug="other", kind="cpu", name="O", created_at=timezone.now())
    ranked("here", 9.0, device="other")
    record = client.get("/").content.decode().split('class="instrument-record"')[1]
    record = " ".join(record.split("</section>")[0].split())
    assert str(there.submission_id) in record
    assert "on H (imported)." in record


def test_the_device_with_most_tasks_is_shown_whichever_was_measured_last() -> None:
    versions = [factories.make_task_version(), factories.make_task_version(name="second")]
    for version in versions:
        there = ranked("there", 9.0, timedelta(days=2), task_version=version)
    Device.objects.filter(pk=there.device_id).update(imported_from="elsewhere")
    assert record_of_the_day(timezone.now(), leading()) is None
    assert live(there.submission.author, timezone.now(), []).verdicts == []
    Device.objects.create(slug="other", kind="cpu", name="O", created_at=timezone.now())
    here = ranked("here", 2.0, device="other", task_version=versions[0])
    board, others = boards(leading(), AnonymousUser())
    assert board is not None
    assert (board.device, board.first, board.leads, board.of) == (there.device, "", 0, "0 tasks")
    assert others == [here.device]
    assert default_device() == default_device("second") == there.device_id
    assert default_device(versions[0].task.slug) == "other"
    ranked("here", 2.0, device="other", task_version=versions[1])
    board, _ = boards(leading(), AnonymousUser())
    assert board is not None
    assert board.device == here.device, "of equals, one of this site"
    assert default_device() == "other"


def test_results_that_are_not_provisional_decide_which_device_is_shown() -> None:
    ranked("there", 9.0, timedelta(days=2))
    factories.pass_audits()
    Device.objects.create(slug="other", kind="cpu", name="O", created_at=timezone.now())
    for name in ("second", "third"):
        ranked("here", 2.0, device="other", task_version=factories.make_task_version(name=name))
    board, _ = boards(leading(), AnonymousUser())
    assert board is not None
    assert board.device.slug == default_device() == "cpu"


def test_home_and_leaderboard_open_on_a_device_of_the_reader_or_of_a_live_runner(
    client: Client,
) -> None:
    """A fresh site has shipped kernels and imported results; then people come."""
    version = factories.make_task_version()
    there = ranked("there", 9.0, task_version=version)
    factories.pass_audits()
    Device.objects.filter(pk=there.device_id).update(imported_from="elsewhere", name="Imported")
    for slug in ("busy", "own"):
        Device.objects.create(slug=slug, kind="cpu", name=slug, created_at=timezone.now())
    shipped = ranked("naive", 1.0, task_version=version, device="busy")
    Agent.objects.filter(pk=shipped.submission.agent_id).update(kind=Agent.Kind.SHIPPED, owner=None)
    runner = factories.make_runner(device=Device.objects.get(pk="busy"), seen_at=timezone.now())

    def opens_on(slug: str) -> bool:
        board, _ = boards(leading(), reader)
        assert board is not None
        on_board = f'value="{slug}" selected' in client.get("/leaderboard/").content.decode()
        return (board.device.slug, default_device(reader=reader), on_board) == (slug, slug, True)

    reader = factories.make_user()
    client.force_login(reader)
    assert opens_on(there.device_id), "only shipped kernels were measured here"
    ranked("somebody", 2.0, task_version=version, device="busy")
    assert opens_on("busy")
    runner.seen_at -= timedelta(days=1)
    runner.save()
    assert opens_on(there.device_id), "nobody is there to measure"
    ranked("mine", 2.0, task_version=version, device="own", user=reader)
    assert opens_on("own")
    assert default_device() == there.device_id


def test_it_shows_verdicts_work_queues_run_and_record(client: Client) -> None:
    version = factories.make_task_version()
    done = ranked("swift", 4.0, task_version=version)
    waiting = factories.make_evaluation(agent="patient", task_version=version)
    working = factories.make_evaluation(agent="busy", task_version=version)
    factories.start(working)
    run = factories.make_run(task_version=version, seed_latency_ns=800.0, name="night shift")
    for latency_ns in (1000.0, 400.0, 600.0, 200.0):
        factories.make_candidate(run, verdict="CORRECT", state="measured", latency_ns=latency_ns)
    text = client.get("/").content.decode()
    assert "instrument-record" in text
    assert str(done.submission_id) in text
    assert str(working.submission_id) in text
    assert str(waiting.submission_id) not in text
    assert "1 running, 1 from people waiting" in text
    assert "night shift" in text
    assert 'aria-label="Speedup over the seed kernel' in text
    assert 'id="no-runner"' in text


def test_without_a_running_run_the_latest_one_draws_its_line(client: Client) -> None:
    version = factories.make_task_version()
    for name, hour, private in (("old", 1, False), ("late", 2, False), ("mine", 3, True)):
        at = timezone.now() - timedelta(hours=9 - hour)
        run = factories.make_run(
            task_version=version, seed_latency_ns=800.0, name=name, status="FINISHED",
            advanced_at=at, ended_at=at, private=private,
        )  # fmt: skip
        factories.make_candidate(run, verdict="CORRECT", state="measured", latency_ns=400.0)
    text = client.get("/").content.decode()
    assert "Latest run, ended <time" in text
    assert 'aria-label="Speedup over the seed kernel' in text
    line = text.split('class="instrument-line"')[1].split("</section>")[0]
    assert ("late" in line, "old" in line, "mine" in line) == (True, False, False)


@pytest.mark.parametrize("status", ["RUNNING", "FINISHED"])
def test_a_run_whose_best_is_its_seed_is_not_the_highlight(client: Client, status: str) -> None:
    run = factories.make_run(status=status, seed_latency_ns=400.0, name="empty", strategy="fsr")
    seed = factories.make_candidate(run, verdict="CORRECT", state="measured", latency_ns=400.0)
    Run.objects.filter(pk=run.pk).update(best=seed)
    text = client.get("/").content.decode()
    assert "Speedup over the seed kernel" not in text
    assert "Feature search" not in text
    own = factories.make_candidate(run, verdict="CORRECT", state="measured", latency_ns=200.0)
    Run.objects.filter(pk=run.pk).update(best=own)
    assert "Feature search" in client.get("/").content.decode()


def test_private_work_shows_to_its_author_alone(client: Client) -> None:
    user = factories.make_user()
    private = factories.make_finished_evaluation(
        verdict=Verdict.WRONG_RESULT, user=user, private=True
    )
    assert str(private.submission_id) not in client.get("/").content.decode()
    client.force_login(user)
    text = client.get("/", headers={"HX-Request": "true"}).content.decode()
    assert str(private.submission_id) in text
    assert ("instrument-feed" in text, "<html" in text) == (True, False)
    held()
    assert "In quarantine" in client.get("/").content.decode()


def test_the_line_of_a_run_rises_where_a_candidate_is_faster_than_all_before() -> None:
    assert best_so_far(factories.make_run()) == [], "it has no seed"
    run = factories.make_run(seed_latency_ns=800.0)
    assert best_so_far(run) == [1.0]
    for latency_ns in (1000.0, 400.0, 600.0, None, 200.0):
        verdict = "CORRECT" if latency_ns else "WRONG_RESULT"
        factories.make_candidate(run, verdict=verdict, state="measured", latency_ns=latency_ns)
    factories.make_candidate(run)
    assert best_so_far(run) == [1.0, None, 2.0, None, None, 4.0, 4.0]
