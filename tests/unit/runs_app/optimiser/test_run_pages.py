"""The pages on which runs are listed, watched, controlled and read."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gpu_runner.data import codec
from gpu_runner.data.evaluation import Mismatch
from gpu_runner.data.symptom import Finding, Symptom
from runs_app.core.messaging import queues
from runs_app.models import Candidate, LanguageModel, Run, RunEvent
from runs_app.optimiser import candidate_page, views
from runs_app.optimiser import page as run_page
from runs_app.optimiser.evolve.feedback import Feedback, WorkloadTime
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs whose next step was asked of RQ, which is not there."""
    asked: list[str] = []
    monkeypatch.setattr(queues, "enqueue_advance", lambda run_id: asked.append(str(run_id)))
    return asked


@pytest.fixture
def ada() -> User:
    """Somebody with an account."""
    return make.make_user(username="ada")


@pytest.fixture
def own(client: Client, ada: User) -> Client:
    """Ada's browser."""
    client.force_login(ada)
    return client


def measured(run: Run, **overrides: Any) -> Candidate:
    """A candidate with a time."""
    times = WorkloadTime(
        name="n256", parameters={"N": "256"}, time_ns=500.0, low_ns=490.0, high_ns=510.0,
        baseline_ns=1500.0, floor_ns=100.0,
    )  # fmt: skip
    feedback = Feedback(verdict="CORRECT", reason="", latency_ns=500.0, workloads=(times,))
    fields: dict[str, Any] = {
        "state": "measured", "verdict": "CORRECT", "latency_ns": 500.0, "speedup": 3.0,
        "spread": 0.01, "floor_fraction": 0.2, "feedback": codec.encode(feedback),
    }  # fmt: skip
    return make.make_candidate(run, **{**fields, **overrides})


def text(client: Client, path: str, **headers: str) -> str:
    """A page that must be there."""
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


class TestList:
    """The list of runs."""

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("task=scale", 2), ("task=sorting", 0), ("status=PAUSED", 1), ("device=abacus", 0),
            ("mine=1", 1), ("mine=1&strategy=islands", 0), ("status=nonsense", 0),
        ],
    )  # fmt: skip
    def test_filters(self, own: Client, ada: User, query: str, found: int) -> None:
        version = make.make_task_version()
        make.make_run(user=ada, task_version=version)
        make.make_run(task_version=version, strategy="islands", status="PAUSED", resumed_at=None)
        page = text(own, f"/runs/?{query}", **{"HX-Request": "true"})
        assert page.count('<tr><th scope="row">') == found
        assert ("No run matches" in page, "<h1" in page) == (found == 0, False)

    def test_the_next_page_keeps_the_filters(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(views, "_ROWS", 1)
        for _ in range(2):
            make.make_run(strategy="islands")
        page = text(client, "/runs/?strategy=islands")
        assert 'href="?strategy=islands&amp;page=2">Next</a>' in page


class TestLivePage:
    """The page of one run."""

    def test_its_table_has_pages(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(views, "_TABLE_ROWS", 1)
        run = make.make_run()
        for _ in range(2):
            measured(run)
        page = text(client, run.get_absolute_url())
        assert 'href="?page=2#table">Older</a>' in page

    def test_it_is_its_owners_to_control(self, own: Client, ada: User) -> None:
        run, other = make.make_run(user=ada), make.make_run()
        assert "Pause</button>" not in text(own, other.get_absolute_url())
        own.post(f"{other.get_absolute_url()}pause/")
        other.refresh_from_db()
        assert other.status == "RUNNING"
        address = run.get_absolute_url()
        page = text(own, address)
        assert ("Pause</button>" in page, '<details id="stop"' in page) == (True, True)
        for action, status in (("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPED")):
            assert own.post(f"{address}{action}/").status_code == 302
            run.refresh_from_db()
            assert run.status == status
        refused = own.post(f"{address}pause/", follow=True).content.decode()
        assert "Not paused: this run is stopped" in refused
        assert '<details id="stop"' not in refused
        assert own.get(f"{address}pause/").status_code == 405

    def test_a_budget_is_extended(self, own: Client, ada: User) -> None:
        run = make.make_run(user=ada)
        caps = {"usd": "1.5", "tokens": "", "evaluations": "99", "minutes": "2"}
        assert own.post(f"{run.get_absolute_url()}extend/", caps).status_code == 302
        wanted = {"usd": 1.5, "tokens": None, "evaluations": 99, "wall_time_s": 120}
        assert run_page.budget(run) == wanted
        for bad, words in (
            ({"evaluations": "-1"}, "must be 0 or more"),
            ({"usd": "much"}, "enter a number"),
            ({"minutes": "inf"}, "enter a number"),
            ({"minutes": "1e308"}, "must be at most"),
            ({}, "give at least one cap"),
        ):
            answer = own.post(f"{run.get_absolute_url()}extend/", bad)
            assert (answer.status_code, words in answer.content.decode().lower()) == (422, True)
        assert RunEvent.objects.count() == 1

    def test_lines_come_from_the_best_where_the_start_knew_none(self) -> None:
        run = make.make_run()
        candidate = measured(run)
        candidate.feedback["speedups"] = {"eager": 4.0, "compiled": 3.0, "best": 3.0}
        candidate.save()
        lines = run_page.reference_lines(run)
        assert lines == {"eager": 2000.0, "compiled": 1500.0, "physical limit": 100.0}


class TestCandidate:
    """The drawer, and the page without scripts."""

    def test_the_drawer_and_the_page(self, client: Client) -> None:
        run = make.make_run(seed_latency_ns=1000.0)
        measured(run, source="int a;\nint b;\n", latency_ns=1000.0)
        measured(run, source="int a;\nint c;\n", votes={"compile": True}, knobs={"TILE": "8"})
        address = f"{run.get_absolute_url()}candidates/2/"
        page, fragment = text(client, address), text(client, address, **{"HX-Request": "true"})
        assert "<h1>Candidate 2</h1>" in page
        assert "<h1" not in fragment
        for words in ("2.00×", "TILE=8", "agreed", "int b;", "int c;", 'class="line add"', "n256"):
            assert words in page, words
            assert words in fragment

    def test_each_vote_is_held_against_its_own_question(self) -> None:
        votes = {"compile": True, "memory": False, "numerics": True}
        for verdict, right in {
            "CORRECT": [True, False, True], "COMPILE_ERROR": [False, None, None],
            "TIME_LIMIT": [True, True, None], "WRONG_RESULT": [True, False, False],
            "UNSTABLE": [None] * 3, "SYSTEM_ERROR": [None] * 3, "": [None] * 3,
        }.items():  # fmt: skip
            found = candidate_page.votes(Candidate(verdict=verdict, votes=votes))
            assert [vote.right for vote in found] == right, verdict
        truths = run_page.script_config(make.make_run())["truth"]
        assert (truths["memory"]["TIME_LIMIT"], truths["numerics"]["UNSTABLE"]) == (False, None)

    def test_what_failed_is_explained(self, client: Client) -> None:
        run = make.make_run()
        mismatch = Mismatch(
            workload="n256", output="out", reason="off by 3", index=(3, 1), expected=1.0,
            actual=4.0,
            findings=(Finding(symptom=Symptom.FACTOR, text="four times what was expected"),),
        )  # fmt: skip
        feedback = Feedback(
            verdict="WRONG_RESULT", reason="off by 3", mismatch=mismatch, build_log="a warning <b>"
        )
        make.make_candidate(
            run, state="measured", verdict="WRONG_RESULT", reason="off by 3",
            feedback=codec.encode(feedback),
        )  # fmt: skip
        page = text(client, f"{run.get_absolute_url()}candidates/1/")
        assert "out[3, 1]" in page
        assert "four times what was expected" in page
        assert "a warning &lt;b&gt;" in page

    def test_calls_are_shown_whole(self, client: Client) -> None:
        run = make.make_run(strategy="evolve")
        model = LanguageModel.objects.create(name="writer", created_at=make.NOW)
        call = run.calls.create(
            number=1, role="propose", language_model=model, temperature=0.5, max_tokens=100,
            messages=[{"role": "user", "content": "Be <fast>"}], status="ANSWERED",
            response="I tile it.\n```cpp\nint x;\n```\n", cost_usd=0.5, tokens_in=10, tokens_out=5,
            created_at=make.NOW, ended_at=make.NOW, prompt="propose",
        )  # fmt: skip
        make.make_candidate(run, call=call, model="writer")
        page = text(client, f"{run.get_absolute_url()}candidates/1/")
        assert "Be &lt;fast&gt;" in page
        assert "I tile it." in page
        assert "$0.50" in page


def test_no_text_of_a_candidate_names_a_hidden_workload() -> None:
    run = make.make_run()
    secret = make.HIDDEN_WORKLOAD
    call = run.calls.create(
        language_model=make.make_judge(), role="writer", number=1, temperature=0.5, max_tokens=9,
        messages=[{"role": "user", "content": f"mind {secret}"}], response=f"I minded {secret}.",
        problem=f"{secret} is unknown", created_at=make.NOW, ended_at=make.NOW,
        sent_at=make.NOW, status="ANSWERED",
    )  # fmt: skip
    make.make_candidate(
        run, title=f"for {secret}", reason=f"slow on {secret}", verdict="WRONG_RESULT", call=call,
        feedback={"mismatch": {"workload": secret, "output": "y", "reason": f"of {secret}"},
                  "workloads": [{"name": "n256", "time_ns": 1.0, "low_ns": 1.0, "high_ns": 1.0}]},
    )  # fmt: skip
    address = run.get_absolute_url()
    pages = (address, f"{address}candidates/1/", f"/api/v1{address}candidates/1")
    for path in pages:
        text = Client().get(path).content.decode()
        assert "a hidden workload" in text, path
        assert secret not in text, path
    run.candidates.get(title__contains=secret)  # nothing is lost
