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
from runs_app.optimiser import candidate_page
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

    def test_an_empty_list_says_what_to_do(self, client: Client) -> None:
        assert "No runs yet" in text(client, "/runs/")
        assert "/runs/new/" in text(client, "/runs/")

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("", 2), ("task=scale", 2), ("task=sorting", 0), ("strategy=islands", 1),
            ("status=PAUSED", 1), ("device=abacus", 0), ("mine=1", 1),
            ("mine=1&strategy=islands", 0), ("status=nonsense", 0),
        ],
    )  # fmt: skip
    def test_filters(self, own: Client, ada: User, query: str, found: int) -> None:
        version = make.make_task_version()
        make.make_run(user=ada, task_version=version)
        make.make_run(task_version=version, strategy="islands", status="PAUSED", resumed_at=None)
        page = text(own, f"/runs/?{query}")
        assert page.count('<tr><th scope="row">') == found
        assert ("No run matches" in page) == (found == 0)

    def test_a_fragment_is_only_the_table(self, client: Client) -> None:
        make.make_run()
        page = text(client, "/runs/", **{"HX-Request": "true"})
        assert "<h1" not in page
        assert 'data-moving="yes"' in page

    def test_the_first_page_shows_what_is_running(self, client: Client) -> None:
        run = make.make_run(seed_latency_ns=1000.0, best_latency_ns=500.0)
        assert run.get_absolute_url() in text(client, "/")
        Run.objects.update(status="STOPPED", resumed_at=None, ended_at=make.NOW)
        assert run.get_absolute_url() not in text(client, "/")


class TestLivePage:
    """The page of one run."""

    def test_it_tells_of_an_empty_run(self, client: Client) -> None:
        page = text(client, make.make_run().get_absolute_url())
        assert "Running" in page
        assert "No candidate yet" in page
        assert "of 40" in page  # the budget's evaluations

    def test_buttons_are_the_owners_alone(self, own: Client, ada: User) -> None:
        mine, other = make.make_run(user=ada), make.make_run()
        assert "Pause</button>" in text(own, mine.get_absolute_url())
        assert "Pause</button>" not in text(own, other.get_absolute_url())
        assert own.post(f"{other.get_absolute_url()}pause/", follow=True).status_code == 200
        other.refresh_from_db()
        assert other.status == "RUNNING"

    def test_without_scripts_there_is_a_table(self, client: Client) -> None:
        run = make.make_run()
        measured(run)
        make.make_candidate(run, state="measured", verdict="COMPILE_ERROR", reason="no such thing")
        page = text(client, run.get_absolute_url())
        assert "500" in page
        assert "Compile error" in page
        assert "no such thing" in page

    def test_it_is_controlled(self, own: Client, ada: User) -> None:
        run = make.make_run(user=ada)
        address = run.get_absolute_url()
        for action, status in (("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPED")):
            assert own.post(f"{address}{action}/").status_code == 302
            run.refresh_from_db()
            assert run.status == status
        kinds = list(run.events.order_by("seq").values_list("kind", flat=True))
        assert kinds == ["paused", "resumed", "stopped"]
        refused = own.post(f"{address}pause/", follow=True).content.decode()
        assert "Not paused: this run is stopped" in refused
        assert own.get(f"{address}pause/").status_code == 405

    def test_a_stop_is_asked_for_twice_and_then_final(self, own: Client, ada: User) -> None:
        run = make.make_run(user=ada)
        page = text(own, run.get_absolute_url())
        assert '<details id="stop"' in page
        assert "running for" in page
        own.post(f"{run.get_absolute_url()}stop/")
        page = text(own, run.get_absolute_url())
        assert '<details id="stop"' not in page
        assert "ran for" in page

    def test_caps_on_models_are_kept_where_there_is_none(self, own: Client, ada: User) -> None:
        page = text(own, make.make_run(user=ada).get_absolute_url())
        assert 'type="hidden" name="usd"' in page
        assert 'for="x-tokens"' not in page

    def test_a_sign_in_leads_back(self, client: Client) -> None:
        address = make.make_run().get_absolute_url()
        assert f'href="/sign-in/?next={address}%3Fpage%3D1"' in text(client, f"{address}?page=1")
        assert 'href="/sign-in/?next=/runs/"' in text(client, "/sign-in/?next=/runs/")

    def test_a_budget_is_extended(self, own: Client, ada: User) -> None:
        run = make.make_run(user=ada)
        caps = {"usd": "1.5", "tokens": "", "evaluations": "99", "minutes": "2"}
        assert own.post(f"{run.get_absolute_url()}extend/", caps).status_code == 302
        wanted = {"usd": 1.5, "tokens": None, "evaluations": 99, "wall_time_s": 120}
        assert run_page.budget(run) == wanted
        assert "of 99" in text(own, run.get_absolute_url())

    @pytest.mark.parametrize(
        ("caps", "words"),
        [
            ({"evaluations": "-1"}, "Must be 0 or more"),
            ({"usd": "much"}, "Enter a number"),
            ({}, "give at least one cap"),
            ({"minutes": "inf"}, "Enter a number"),
            ({"minutes": "1e308"}, "Must be at most"),
            ({"evaluations": "1" + "0" * 23}, "Must be at most"),
        ],
    )
    def test_a_bad_budget_is_said_beside_its_field(
        self, own: Client, ada: User, caps: dict[str, str], words: str
    ) -> None:
        run = make.make_run(user=ada)
        answer = own.post(f"{run.get_absolute_url()}extend/", caps)
        assert answer.status_code == 422
        assert words.lower() in answer.content.decode().lower()
        assert RunEvent.objects.count() == 0

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

    @pytest.mark.parametrize(
        ("verdict", "right"),
        [
            ("CORRECT", [True, False, True]),
            ("COMPILE_ERROR", [False, None, None]),
            ("TIME_LIMIT", [True, True, None]),
            ("WRONG_RESULT", [True, False, False]),
            ("UNSTABLE", [None, None, None]),
            ("SYSTEM_ERROR", [None, None, None]),
            ("", [None, None, None]),
        ],
    )
    def test_each_vote_is_held_against_its_own_question(
        self, verdict: str, right: list[bool | None]
    ) -> None:
        votes = {"compile": True, "memory": False, "numerics": True}
        found = candidate_page.votes(Candidate(verdict=verdict, votes=votes))
        assert [vote.right for vote in found] == right

    def test_the_script_knows_the_same_truth(self) -> None:
        truths = run_page.script_config(make.make_run())["truth"]
        assert (truths["memory"]["TIME_LIMIT"], truths["compile"]["TIME_LIMIT"]) == (False, True)
        assert truths["numerics"]["UNSTABLE"] is None

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

    def test_what_is_not_correct_is_not_submitted(self, own: Client, ada: User) -> None:
        run = make.make_run(user=ada)
        make.make_candidate(run, state="measured", verdict="WRONG_RESULT")
        answer = own.post(f"{run.get_absolute_url()}candidates/1/enter/", follow=True)
        assert "Not submitted: candidate 1 is not correct" in answer.content.decode()


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
