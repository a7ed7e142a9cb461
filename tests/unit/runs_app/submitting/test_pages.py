"""The pages on which kernels are entered and watched."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from gpu_runner.data.evaluation import BuildReport, Mismatch, StageTime
from gpu_runner.data.event import EventKind
from gpu_runner.data.queue import Urgency
from gpu_runner.data.symptom import Finding, Symptom
from gpu_runner.data.verdict import Language, Mode, Stage, Verdict
from runs_app.core.work import lifecycle
from runs_app.models import Evaluation, Submission
from runs_app.submitting.live import live_view
from runs_app.submitting.page import stage_rows
from runs_app.submitting.quota import quota
from runs_app.submitting.services import cancel as cancel_evaluation
from tests import factories
from tests.results import told
from tests.unit.queued import Jobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


@pytest.fixture
def signed_in(client: Client) -> Client:
    """A browser of a person with an account, on a site with one task."""
    factories.make_task_version()
    client.force_login(factories.make_user(username="ada"))
    return client


def form(**overrides: Any) -> dict[str, Any]:
    """What the form sends for a good submission."""
    fields = {
        "task": "scale",
        "direction": "forward",
        "device": "cpu",
        "mode": "ranked",
        "source": factories.SOURCE,
        "written_by": "person",
    }
    return fields | overrides


def page_of(client: Client, evaluation: Evaluation) -> str:
    """Text of an evaluation's page."""
    answer = client.get(f"/submissions/{evaluation.submission_id}/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_quick_result_says_how_many_workloads_it_measured(client: Client) -> None:
    quick = factories.make_finished_evaluation(
        mode="quick", result={"workloads": (factories.make_workload_result(),)}
    )
    text = client.get(quick.submission.get_absolute_url()).content.decode()
    assert "1 of 3 workloads were measured; 1 is for ranked mode only." in text
    ranked = factories.make_finished_evaluation(mode="ranked", task_version=quick.task_version)
    assert "were measured" not in client.get(ranked.submission.get_absolute_url()).content.decode()


def test_a_run_is_offered_only_where_one_could_write_the_kernel(client: Client) -> None:
    evaluation = factories.make_finished_evaluation()
    assert f"?submission={evaluation.submission_id}&amp;device=cpu" in page_of(client, evaluation)
    evaluation.submission.language = Language.CUDA
    evaluation.submission.save()
    factories.make_device(slug="theirs", imported_from="kernels.example")
    assert "Optimize" not in page_of(client, evaluation)
    factories.make_device()
    assert "&amp;device=nvidia-h200" in page_of(client, evaluation)


def test_a_page_is_never_older_than_the_events_that_it_counts() -> None:
    evaluation = factories.make_evaluation()
    read_before = Evaluation.objects.get(pk=evaluation.pk)
    factories.send(evaluation, EventKind.STARTED, {"runner": "nobody", "at": 0.0})
    live = live_view(read_before, evaluation.submission.author, factories.NOW)
    assert live.evaluation.status == "RUNNING"
    assert "queue" not in live.summary.sentence


def test_a_submission_leads_to_its_page_and_is_its_authors(signed_in: Client, jobs: Jobs) -> None:
    typed = {"agent": "robot", "language_model": "alpha"}
    answer = signed_in.post("/submit/", form(**typed), follow=True)  # a person, all the same
    submission = Submission.objects.get()
    assert answer.redirect_chain[-1][0] == submission.get_absolute_url()
    assert submission.evaluations.get().mode == "ranked"
    assert (submission.agent.name, submission.language_model) == ("ada", None)
    signed_in.post("/submit/", form(written_by="agent", **typed))
    by_agent = Submission.objects.exclude(pk=submission.pk).get()
    assert (by_agent.agent.name, str(by_agent.language_model)) == ("robot", "alpha")
    source = signed_in.get(f"/submissions/{submission.pk}/source/")
    assert source["Content-Type"] == "text/plain; charset=utf-8"
    assert "attachment" in source["Content-Disposition"]
    assert source.content.decode() == submission.source
    assert Client().get("/submit/").status_code == 200
    answer = Client().post("/submit/", form())
    assert (answer.status_code, answer["Location"][:9]) == (302, "/sign-in/")
    assert Submission.objects.count() == 2


def test_a_refusal_names_the_field_and_keeps_everything(signed_in: Client, settings: Any) -> None:
    def upload(content: bytes) -> dict[str, Any]:
        return {"source": "", "file": SimpleUploadedFile("kernel.cpp", content)}

    good = factories.SOURCE.encode()
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"source": "  "}, "Paste the kernel"),
        ({"source": "x" * (2**20 + 1)}, "the limit is 1048576"),
        (upload(b"\xff\xfe\x00"), "kernel.cpp is "),
        (upload(b"x" * (2**20 + 1)), "kernel.cpp is 1048577"),
        (upload(good) | {"direction": "backward"}, "has only: forward"),
        ({"task": ""}, "Choose a task"),
        ({"device": "abacus"}, "Select a valid"),
        ({"direction": "backward"}, "has only: forward"),
        ({"written_by": "agent"}, "Enter the agent&#x27;s name"),
        ({"written_by": "agent", "agent": "<b>"}, "Must start with"),
        ({"written_by": "agent", "agent": "r", "language_model": "<b>"}, "Must start with"),
    )
    for change, words in cases:
        answer = signed_in.post("/submit/", form(**change))
        text = answer.content.decode()
        assert (answer.status_code, words in text) == (422, True), change
        if "source" not in change or "direction" in change:
            assert "out[0] = N * x[0];" in text
    assert Submission.objects.count() == 0
    settings.MAX_WAITING_PER_USER = 1
    signed_in.post("/submit/", form(**upload(good)))
    assert Submission.objects.get().source == factories.SOURCE
    assert signed_in.post("/submit/", form()).status_code == 422, "the quota is used"


def test_a_wrong_result_shows_its_first_wrong_element(client: Client) -> None:
    mismatch = Mismatch(
        workload="n256", output="out", reason="off by 3e-2", index=(3, 17), expected=0.125,
        actual=float("nan"), bound=1e-6, wrong_elements=7, elements=256,
        findings=(Finding(symptom=Symptom.TAIL, text="only the last <7> elements are wrong"),),
    )  # fmt: skip
    found = {"mismatch": mismatch, "output": "<script>alert(2)</script>"}
    source = f"// </pre><script>alert(1)</script>\n{factories.SOURCE}"
    evaluation = factories.make_finished_evaluation(Verdict.WRONG_RESULT, found, source=source)
    text = page_of(client, evaluation)
    for part in ("out[3, 17]", "0.125", "nan", "off by 3e-2", "last &lt;7&gt;", "tail"):
        assert part in text
    assert "<script>alert" not in text
    del evaluation.result.document["mismatch"]["findings"]  # as of before there were any
    evaluation.result.save()
    assert "out[3, 17]" in page_of(client, evaluation)


def test_a_compile_error_shows_the_log_with_links_to_lines(client: Client) -> None:
    log = "kernel.cpp:1:14: error: <b>no</b>"
    build = BuildReport(
        ok=False, cached=False, duration_s=0.5, log=log, command="g++ kernel.cpp",
        compiler="g++ 14", digest="0" * 64,
    )  # fmt: skip
    text = page_of(
        client, factories.make_finished_evaluation(Verdict.COMPILE_ERROR, result={"build": build})
    )
    assert '<a href="#L-1">kernel.cpp:1</a>:14: error: &lt;b&gt;no&lt;/b&gt;' in text
    assert 'id="L-1"' in text


def test_only_the_author_may_run_again_or_cancel(signed_in: Client) -> None:
    evaluation = factories.make_evaluation()
    rerun = f"/submissions/{evaluation.submission_id}/rerun/"
    cancel = f"/evaluations/{evaluation.pk}/cancel/"
    for path in (rerun, cancel):
        answer = signed_in.post(path, {"mode": "ranked"}, follow=True)
        assert "only its author" in answer.content.decode()
    evaluation.refresh_from_db()
    assert evaluation.status == "QUEUED"
    signed_in.force_login(evaluation.submission.author)
    page = signed_in.get(f"/submissions/{evaluation.submission_id}/").content.decode()
    assert "counts toward the daily limit" in page.partition(cancel)[2]
    before = quota(evaluation.submission.author, timezone.now())
    signed_in.post(cancel)
    after = quota(evaluation.submission.author, timezone.now())
    assert (after.waiting, after.today) == (before.waiting - 1, before.today)
    signed_in.post(rerun, {"mode": "ranked"})
    states = sorted(evaluation.submission.evaluations.values_list("status", "mode"))
    assert states == [("CANCELLED", "quick"), ("QUEUED", "ranked")]


def test_the_live_part_carries_what_the_script_needs(client: Client) -> None:
    evaluation = factories.make_evaluation()
    factories.start(evaluation)
    payload = {"stage": "build", "state": "running", "elapsed_s": 0.1, "detail": "nvcc"}
    factories.send(evaluation, EventKind.STAGE, payload, seq=2)
    text = client.get(f"/evaluations/{evaluation.pk}/live/").content.decode()
    assert 'data-status="RUNNING"' in text
    assert 'data-seq="3"' in text
    assert 'data-stage="build" data-state="running" data-since=' in text
    assert "data-left" not in text, "nobody knows how long it takes"
    cache.clear()
    factories.make_finished_evaluation(mode=evaluation.mode)
    text = client.get(f"/evaluations/{evaluation.pk}/live/").content.decode()
    assert re.search(r'data-left="\d+">(Verdict in about|Taking longer than usual)', text)


def test_the_queue_counts_every_job_and_says_who_goes_first(client: Client) -> None:
    """A runner may work at a baseline or a check; what waits for long isn't taken in seconds."""
    background = factories.make_evaluation(now=timezone.now() - timedelta(minutes=4))
    rows = Evaluation.objects.filter(pk=background.pk)
    rows.update(queue_place=Urgency.BACKGROUND.place)
    runner = factories.make_runner(seen_at=timezone.now())

    def shown() -> str:
        return " ".join(client.get("/queue/").content.decode().split())

    text = shown()
    assert "1 waiting; a new submission would go ahead of it · 0 running" in text
    assert "The site&#x27;s own work: 1 waiting" in text or "The site's own work: 1 waiting" in text
    assert "it starts as soon as a runner asks for its next job" in text
    runner.current = ["a-baseline"]
    runner.save()
    text = shown()
    assert "· 1 running" in text
    assert "next, as soon as a runner is free" in text
    rows.update(queued_at=timezone.now())
    runner.current = []
    runner.save()
    assert "a runner is free and will take it within seconds" in shown()


def test_the_queue_leaves_out_runners_that_are_gone(client: Client) -> None:
    now = timezone.now()
    factories.make_runner(name="here", seen_at=now)
    factories.make_runner(name="late", seen_at=now - timedelta(hours=23))
    factories.make_runner(name="lost", seen_at=now - timedelta(hours=25))
    factories.make_runner(name="shut", seen_at=now, state="stopped")
    text = client.get("/queue/").content.decode()
    assert [f".{name}<" in text for name in ("here", "late", "lost", "shut")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_stages_of_a_failure_say_where_it_failed() -> None:
    times = tuple(
        StageTime(stage=stage, started_s=0.0, duration_s=1.0)
        for stage in (Stage.BUILD, Stage.DEVICE, Stage.MEASURE)
    )
    result = replace(told(verdict="TIME_LIMIT"), stages=times)
    rows = {row.stage: row.state for row in stage_rows("quick", [], 1, result)}
    assert (rows["build"], rows["measure"], rows["verify"]) == ("done", "failed", "skipped")
    event = {
        "kind": "stage", "stage": "build", "attempt": 1, "at": "2026-01-01T00:00:00Z",
        "payload": {"state": "done", "detail": ""},
    }  # fmt: skip
    [build, *_] = stage_rows("quick", [event], 2, None)
    assert build.state == "pending", "those of an attempt that was lost are forgotten"


@pytest.mark.parametrize("mode", Mode)
def test_each_mode_shows_the_stages_that_it_can_reach(mode: Mode) -> None:
    shown = [row.stage for row in stage_rows(mode.value, [], 1, None)]
    if mode is Mode.COMPILE:
        assert shown == [Stage.BUILD]
    else:
        assert (Stage.PROFILE in shown) == (mode is Mode.PROFILE)
        assert (Stage.AUDIT in shown) == (mode is Mode.AUDIT)
        assert len(shown) == len(Stage) - 2 + (mode in (Mode.PROFILE, Mode.AUDIT))


def test_a_cancelled_evaluation_looks_as_if_nothing_runs(signed_in: Client) -> None:
    user = User.objects.get(username="ada")
    waiting, running = (factories.make_evaluation(user=user) for _ in range(2))
    factories.start(running)
    stage = {"stage": "build", "state": "running", "detail": ""}
    factories.send(running, EventKind.STAGE, stage, seq=2)
    for evaluation, words in ((waiting, ["canceled"]), (running, ["done", "canceled"])):
        cancel_evaluation(evaluation=evaluation, user=user, now=factories.later(9))
        states = re.findall(r'data-state="(\w+)"', page_of(signed_in, evaluation))
        assert states == words + ["skipped"] * (len(states) - len(words))
        assert len(states) > len(words)


def test_a_canceled_evaluation_hides_no_earlier_result(client: Client) -> None:
    done = factories.make_finished_evaluation()
    at = {"device": done.device, "mode": Mode(done.mode), "now": factories.later(60)}
    again = lifecycle.evaluate(submission=done.submission, **at)
    address = done.submission.get_absolute_url()
    assert client.get(address).context["page"].live.evaluation == again
    Evaluation.objects.filter(pk=again.pk).update(
        status="CANCELLED", finished_at=factories.later(9)
    )
    assert client.get(address).context["page"].live.evaluation == done


def test_without_a_measured_workload_there_is_no_table(client: Client) -> None:
    bare = factories.make_workload_result(measurement=None, baselines={}, speedups={})
    for workload, is_there in ((bare, False), (factories.make_workload_result(), True)):
        evaluation = factories.make_finished_evaluation(
            Verdict.TIME_LIMIT, {"workloads": (workload,)}
        )
        assert ("Times by workload" in page_of(client, evaluation)) is is_there


def test_what_a_time_is_known_to_is_said_in_a_sentence(client: Client) -> None:
    evaluation = factories.make_finished_evaluation(mode="ranked")
    Evaluation.objects.filter(pk=evaluation.pk).update(latency_spread=0.16, noise=0.0)
    said = " ".join(page_of(client, evaluation).split())
    assert "Another evaluation of this source would be within ±16" in said
    Evaluation.objects.filter(pk=evaluation.pk).update(latency_spread=24.0)
    assert "would be within" not in page_of(client, evaluation)
