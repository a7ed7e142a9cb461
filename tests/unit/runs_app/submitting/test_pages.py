"""The pages on which kernels are entered and watched."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from gpu_runner.data.evaluation import BuildReport, Mismatch
from gpu_runner.data.event import EventKind
from gpu_runner.data.symptom import Finding, Symptom
from gpu_runner.data.verdict import Verdict
from runs_app.models import Evaluation, Submission
from runs_app.submitting.live import live_view
from tests import factories
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
        (upload(b"\xff\xfe\x00"), "kernel.cpp is "),
        (upload(good) | {"direction": "backward"}, "has only: forward"),
        ({"task": ""}, "Choose a task"),
        ({"device": "abacus"}, "Select a valid"),
        ({"written_by": "agent"}, "Name the agent"),
        ({"written_by": "agent", "agent": "<b>"}, "Must start with"),
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


def test_a_correct_result_is_shown_without_its_hidden_workloads(client: Client) -> None:
    evaluation = factories.make_finished_evaluation(mode="ranked")
    text = page_of(client, evaluation)
    assert "n256" in text
    assert "1.50" in text
    assert factories.HIDDEN_WORKLOAD not in text
    answer = client.get(f"/evaluations/{evaluation.pk}/json/")
    assert answer.json()["evaluation_id"] == str(evaluation.pk)
    assert factories.HIDDEN_WORKLOAD not in answer.content.decode()


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


def test_the_queue_says_why_and_shows_nothing_private(client: Client) -> None:
    evaluation = factories.make_evaluation()
    private = factories.make_evaluation(
        task_version=evaluation.task_version, private=True, agent="secret-robot"
    )
    text = client.get("/queue/").content.decode()
    assert "no runner for cpu" in text
    assert f"/submissions/{evaluation.submission_id}/" in text
    assert str(private.submission_id) not in text
    assert "secret-robot" not in text
    (queue,) = client.get("/api/v1/queue").json()
    assert (queue["device"], queue["depth"]) == ("cpu", 2)
    assert {entry["evaluation"] for entry in queue["waiting"]} == {str(evaluation.pk), None}
