"""Runs and settings side by side, and how the best of a run grew."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.verdict import Mode
from runs_app.features.compare.curve import curve
from runs_app.features.compare.runs import ablation_run, summaries
from runs_app.models import Evaluation, LanguageModel, LanguageModelCall, Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.config import Budget, ModelSpec, RunConfig, VerifierConfig
from runs_app.optimiser.evolve.strategies.cudamaster import REPLACED
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def config(seed: int = 7, **overrides: Any) -> RunConfig:
    fields: dict[str, Any] = {"strategy": "evolve", "models": (ModelSpec(name="alpha"),)}
    budget = Budget(usd=2.0, evaluations=40)
    return RunConfig(seed=seed, **{"budget": budget, **fields, **overrides})


def finished(best_ns: float | None, version: Any, **overrides: Any) -> Run:
    """A finished run whose seed takes 1000 ns."""
    fields = {"strategy": "evolve", "status": "FINISHED", "config": config(), **overrides}
    run = make.make_run(task_version=version, seed_latency_ns=1000.0, **fields)
    right = {"verdict": "CORRECT", "state": "measured"}
    make.make_candidate(run, latency_ns=1000.0, speedup=0.5, **right)
    if best_ns is not None:
        speedup = 500.0 / best_ns
        run.best = make.make_candidate(
            run, latency_ns=best_ns, speedup=speedup, edit="rewrite", **right
        )
        run.best_latency_ns = best_ns
    run.save()
    return run


def measured(candidate: int, latency_ns: float | None, *, best: bool) -> events.Measured:
    return events.Measured(
        candidate=candidate,
        mode=Mode.QUICK,
        verdict="CORRECT" if latency_ns else "COMPILE_ERROR",
        reason="",
        latency_ns=latency_ns,
        speedup=2.0 if best else None,
        best=best,
    )


def made_call(run: Run, number: int, **overrides: Any) -> LanguageModelCall:
    model, _ = LanguageModel.objects.get_or_create(name="a", defaults={"created_at": make.NOW})
    asked = {"role": "propose", "messages": [], "temperature": 0.5, "max_tokens": 9}
    ended = {"status": "ANSWERED", "created_at": make.NOW, "ended_at": make.NOW, **overrides}
    return LanguageModelCall.objects.create(
        run=run, number=number, language_model=model, **asked, **ended
    )


def test_a_summary_counts_failures_by_kind() -> None:
    run = finished(500.0, make.make_task_version())
    good = made_call(run, 1)
    made_call(run, 2, problem="no code")
    made_call(run, 3, status="FAILED", problem="HTTP 500")
    run.candidates.filter(number=2).update(call=good)
    make.make_candidate(run, verdict="COMPILE_ERROR", state="measured")
    make.make_candidate(run)  # the budget was used up
    make.make_candidate(run, state="dropped")
    make.make_candidate(run, state="dropped", reason=f"{REPLACED}: see #6")
    entry = make.make_finished_evaluation(mode="ranked")
    assert run.best is not None
    type(run.best).objects.filter(pk=run.best.pk).update(entry=entry.submission, speedup=9.0)
    (found,) = summaries(Run.objects.filter(pk=run.pk), make.NOW)
    assert found.failures == {
        "COMPILE_ERROR": 1,
        "dropped before reaching hardware": 1,
        "replaced by a repaired version": 1,
        "no kernel in the answer": 1,
        "call failed": 1,
    }
    assert (found.measured, found.correct) == (2, 1)  # without the seed
    assert (found.proposals, found.unmeasured) == (3, 1)
    assert found.speedup_seed == pytest.approx(2.0)
    assert found.speedup_baseline == entry.rated  # what the run's page leads with
    assert ablation_run(found, "baseline").speedup == entry.rated
    Evaluation.objects.update(mode="quick", audited="none")
    (found,) = summaries(Run.objects.filter(pk=run.pk), make.NOW)
    assert found.speedup_baseline is not None
    assert ablation_run(found, "baseline").speedup is None  # a mean is over scores alone
    assert found.improved


def test_runs_stand_side_by_side(client: Client) -> None:
    version = make.make_task_version()
    first = finished(500.0, version, name="first", usd=1.0)
    second = finished(250.0, version, name="second", usd=3.0, config=config(temperatures=(1.0,)))
    make.make_run_event(first, "started")
    make.make_run_event(first, measured(2, 500.0, best=True), now=make.later(5))
    answer = client.get(f"/runs/compare/?run={first.pk}&run={second.pk}")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "temperatures" in page
    assert "budget: USD" not in page
    assert "+200 %" in page
    assert "&lt;span" not in page
    address = answer.wsgi_request.get_full_path()
    assert "budget: USD" in client.get(f"{address}&all=1").content.decode()
    pinned = client.get(f"{address}&pin={second.pk}").content.decode()
    assert "−67 %" in pinned
    page = client.get(f"{address}&x=minutes&y=time").content.decode()
    figure = json.loads(page.split('id="best-so-far" type="application/json">')[1].split("</")[0])
    assert figure["data"][0]["y"] == [0.5]


def test_speedups_over_different_seeds_have_no_difference(client: Client) -> None:
    version = make.make_task_version()
    runs = [finished(500.0, version, usd=1.0), finished(250.0, version)]
    address = f"/runs/compare/?run={runs[0].pk}&run={runs[1].pk}"
    same = client.get(address).content.decode()
    assert ("different seed kernels" in same, "+100 %" in same) == (False, True)
    assert "−100 %" in same  # of the cost: $0.00 isn't "0×" of $1.00
    assert "0×<" not in same.replace("00×", "")
    runs[1].problem |= {"seed_source": "other"}
    runs[1].save()
    other = client.get(address).content.decode()
    assert "These runs start from different seed kernels" in " ".join(other.split())
    row = other.split("Best speedup over the seed")[1].split("</tr>")[0]
    assert ("4.00×" in row, "%" in row) == (True, False)


def test_what_cannot_be_compared_is_said(client: Client) -> None:
    version = make.make_task_version()
    secret = finished(500.0, version, name="secret", private=True)
    runs = [finished(500.0, version) for _ in range(6)]
    for asked, words in (
        ([secret.pk], "it is private"),
        (["nonsense"], "nonsense"),
        ([run.pk for run in runs], "at most 5"),
    ):
        answer = client.get("/runs/compare/", {"run": asked})
        assert answer.status_code == 400
        assert words in answer.content.decode()
        assert "secret" not in answer.content.decode()


def repeats(version: Any, speeds: list[float], **overrides: Any) -> None:
    for seed, best_ns in enumerate(speeds):
        finished(best_ns, version, config=config(seed=seed, **overrides))


def test_an_ablation_groups_repeats(client: Client) -> None:
    version = make.make_task_version()
    repeats(version, [500.0, 505.0, 495.0])
    repeats(version, [900.0, 905.0, 895.0], verifiers=VerifierConfig(names=("compile",)))
    make.make_run(task_version=version, strategy="evolve", config=config())
    document = client.get("/runs/ablation/?factor=verifiers&format=json").json()
    off, on = document["groups"]
    assert (off["verifiers"], on["verifiers"]) == ("off", "compile")
    assert off["runs"] == 3
    assert off["speedup"] == pytest.approx(2.0, rel=0.01)
    assert off["speedup_low"] < 2.0 < off["speedup_high"]
    assert off["interval"] == "t"
    assert (off["rank"], on["rank"]) == (1, 2)
    assert client.get("/runs/ablation/").status_code == 200
    table = client.get("/runs/ablation/?factor=verifiers&format=csv").content.decode()
    assert table.startswith("verifiers,rank,tied,runs,speedup")


def test_a_single_run_a_setting_is_no_result(client: Client) -> None:
    version = make.make_task_version()
    finished(500.0, version)
    finished(250.0, version, config=config(temperatures=(1.0,)))
    idle = finished(None, version, config=config(seed=2))
    idle.candidates.update(verdict="", state="drafted", latency_ns=None)  # it counts for none
    owner = make.make_user()
    finished(500.0, version, private=True, user=owner, config=config(temperatures=(0.5,)))
    own = Client()
    own.force_login(owner)
    assert len(own.get("/runs/ablation/?format=json").json()["groups"]) == 3
    groups = client.get("/runs/ablation/?format=json").json()["groups"]
    assert [row["tied"] for row in groups] == [True, True]
    assert [row["speedup_low"] for row in groups] == [None, None]


def test_a_curve_counts_evaluations_money_and_time_without_pauses() -> None:
    run = make.make_run()
    for seconds, kind in (
        (0, "started"),
        (10, measured(1, 1000.0, best=True)),
        (30, measured(2, None, best=False)),
        (30, "paused"),
        (1030, "resumed"),
        (1050, measured(3, 400.0, best=True)),
        (1060, events.Finished(reason="done")),
    ):
        make.make_run_event(run, kind, now=make.later(seconds))
    for seconds, usd in ((20, 0.25), (1040, 0.5), (1055, 0.125)):
        made_call(run, run.calls.count() + 1, cost_usd=usd, ended_at=make.later(seconds))
    points = curve(run)
    assert [(p.evaluations, p.usd, p.active_s, p.latency_ns) for p in points] == [
        (1, 0.0, 10.0, 1000.0),
        (3, 0.75, 50.0, 400.0),
        (3, 0.875, 60.0, 400.0),
    ]
