"""The pages on which runs are listed, watched, controlled and read."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gpu_runner.data import codec
from runs_app.core.integrity.tags import rated
from runs_app.core.messaging import queues
from runs_app.models import Candidate, Run, RunEvent
from runs_app.optimiser import page as run_page
from runs_app.optimiser.evolve.feedback import Feedback, WorkloadTime
from runs_app.optimiser.headline import headline
from runs_app.optimiser.tags import clock
from tasks_app.templatetags.display import amount, seconds
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks RQ, which is not there, for the next step."""
    monkeypatch.setattr(queues, "enqueue_advance", lambda run_id: None)


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
    told_ns = overrides.get("latency_ns", 500.0)
    feedback = Feedback(verdict="CORRECT", reason="", latency_ns=told_ns, workloads=(times,))
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


def test_long_times_are_written_one_way() -> None:
    """On a run's page, in a comparison of runs, and of everything else that takes long."""
    for value, words in ((725.0, "12 min 05 s"), (15272.0, "4 h 14 min")):
        assert clock(value) == seconds(value) == words
    assert [clock(42.4), seconds(42.4), clock(None)] == ["42 s", "42.4 s", "–"]


def test_counts_are_whole_and_notes_stand_apart_from_figures() -> None:
    assert [amount(21), amount(999), amount(7500), amount(21, "FLOP")] == [
        "21", "999", "7.50 k", "21.0 FLOP",
    ]  # fmt: skip
    listed = make.make_finished_evaluation(mode="ranked")
    listed.score = listed.unlisted_speedup = None
    assert '</span> <span class="sub">listed sizes only' in rated(listed)


def test_only_who_may_extend_a_run_is_told_to(own: Client, ada: User) -> None:
    run = make.make_run(
        user=ada, status="FINISHED", by_budget=True, reason="a cap", ended_at=make.NOW
    )
    for reader, is_told in ((own, True), (Client(), False)):
        page = text(reader, run.get_absolute_url())
        assert "The search ended:" in page
        assert ("budget to continue" in " ".join(page.split())) == is_told


class TestLivePage:
    """The page of one run."""

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
            ({}, "set at least one cap"),
        ):
            answer = own.post(f"{run.get_absolute_url()}extend/", bad)
            assert (answer.status_code, words in answer.content.decode().lower()) == (422, True)
        assert RunEvent.objects.count() == 1

    @pytest.mark.parametrize(
        ("latency_ns", "speedups", "leads"),
        [
            (2000.0, {"best": 0.75, "eager": 0.8, "compiled": 0.75}, ("slower", "0.750×")),
            (500.0, {"best": 3.0, "eager": 3.0, "compiled": 4.0}, ("faster", "3.00×")),
            (500.0, {}, ("neutral", "8.00×")),
        ],
    )
    def test_it_leads_with_the_speedup_over_the_best_baseline(
        self, client: Client, latency_ns: float, speedups: dict[str, float], leads: tuple[str, str]
    ) -> None:
        run = make.make_run(status="FINISHED", ended_at=make.NOW)
        told = {"latency_ns": latency_ns, "speedups": speedups}
        row = make.make_finished_evaluation(result=told, task_version=run.task_version)
        measured(run, latency_ns=4000.0)
        run.best = measured(run, latency_ns=latency_ns, submission=row.submission)
        run.best_latency_ns = latency_ns
        run.save()
        page = text(client, run.get_absolute_url())
        head = page[page.index('id="headline"') : page.index("Best time")]
        for words in (*leads, f"{4000 / latency_ns:.2f}× the speed of the seed kernel"):
            assert words in head, words
        assert ("no baseline has been measured" in head) == (not speedups)

    def test_a_figure_that_waits_for_baselines_has_no_color(self) -> None:
        row = make.make_finished_evaluation(result={"pending_baselines": ("compiled",)})
        run = make.make_run(task_version=row.task_version)
        run.best = measured(run, submission=row.submission)
        assert headline(run).kind == "neutral"

    def test_a_figure_of_a_run_that_is_not_over_looks_unfinished(self, client: Client) -> None:
        row = make.make_finished_evaluation(result={"latency_ns": 500.0})
        run = make.make_run(task_version=row.task_version)
        measured(run, latency_ns=4000.0)
        run.best = measured(run, latency_ns=500.0, submission=row.submission)
        run.save()
        said = headline(run)
        assert (said.kind, said.sentence.startswith("So far, ")) == ("neutral", True)
        assert "So far; not final." in text(client, "/")


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
