"""Runs and settings side by side, and how the best of a run grew."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data import codec
from gpu_runner.data.verdict import Mode
from runs_app.features.compare.choice import texts
from runs_app.features.compare.curve import Point, curve
from runs_app.features.compare.runs import settings_of, summaries
from runs_app.models import LanguageModel, LanguageModelCall, Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.config import Budget, ModelSpec, RunConfig, VerifierConfig
from runs_app.optimiser.evolve.strategies.cudamaster import REPLACED
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def config(seed: int = 7, **overrides: Any) -> RunConfig:
    fields: dict[str, Any] = {"strategy": "evolve", "models": (ModelSpec(name="alpha"),)}
    budget = Budget(usd=2.0, evaluations=40)
    return RunConfig(seed=seed, **{"budget": budget, **fields, **overrides})


def differing(columns: list[dict[str, str]]) -> list[str]:
    """Names of settings that are not the same in all columns."""
    return [row.label for row in texts(columns, 0) if row.differs]


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


def test_a_default_that_is_named_is_the_same_setting() -> None:
    silent, named, other = settings_of(
        [
            make.make_run(strategy="evolve", config=config(parameters=parameters))
            for parameters in ({}, {"generations": 10}, {"generations": 11})
        ]
    )
    assert (silent["generations"], silent["verifiers"]) == ("10", "off")
    assert silent["budget: tokens"] == "no cap"
    assert differing([silent, named]) == []
    assert differing([named, other]) == ["generations"]


def test_settings_are_those_that_extensions_left(client: Client) -> None:
    grown, large = (
        make.make_run(strategy="evolve", config=config(parameters=parameters, budget=budget))
        for parameters, budget in (
            ({"generations": 5}, Budget(evaluations=40)),
            ({"generations": 9}, Budget(evaluations=80)),
        )
    )
    extension = events.Extended(budget=Budget(evaluations=80), parameters={"generations": 9})
    make.make_run_event(grown, extension)
    found = settings_of([grown, large])
    assert (found[0]["budget: evaluations"], found[0]["generations"]) == ("80", "9")
    assert differing(found) == []
    page = client.get(f"/runs/compare/?run={grown.pk}&run={large.pk}").content.decode()
    assert "These runs have the same" in page


def test_one_kernel_is_one_setting_whatever_a_run_calls_it() -> None:
    source = "int one;\nint two;\n"
    own, named, other = (
        make.make_run(problem=codec.encode(make.make_problem(seed_source=text, seed_title=title)))
        for text, title in (
            (source.replace("\n", "\r\n"), "the starting kernel"),
            (source, "kbench-naive"),
            ("int three;", "kbench-naive"),
        )
    )
    columns = settings_of([own, named, other])
    assert columns[0]["seed kernel"].startswith("kbench-naive (")
    assert differing(columns[:2]) == []
    assert differing(columns[1:]) == ["seed kernel"]
    problem = make.make_problem(seed_source=source, seed_entry="a.cpp", seed_files={"a.h": "int;"})
    several = settings_of([named, make.make_run(problem=codec.encode(problem))])
    assert differing(several) == ["seed kernel"]


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
    make.make_candidate(run, state="dropped")
    make.make_candidate(run, state="dropped", reason=f"{REPLACED}: see #6")
    (found,) = summaries(Run.objects.filter(pk=run.pk), make.NOW)
    assert found.failures == {
        "COMPILE_ERROR": 1,
        "dropped before hardware": 1,
        "replaced by a repaired version": 1,
        "no kernel in the answer": 1,
        "call failed": 1,
    }
    assert (found.measured, found.correct, found.proposals, found.valid) == (3, 2, 3, 1)
    assert found.speedup_seed == pytest.approx(2.0)
    assert found.speedup_baseline == pytest.approx(1.0)
    assert found.improved


def test_a_lost_evaluation_says_nothing_of_its_kernel() -> None:
    run = finished(400.0, make.make_task_version())
    make.make_candidate(run, verdict="SYSTEM_ERROR", state="measured")
    make.make_candidate(run, state="drafted")  # its evaluation was cancelled as the run ended
    lost = events.Measured(candidate=3, mode=Mode.QUICK, verdict="SYSTEM_ERROR", reason="gone")
    make.make_run_event(run, measured(2, 400.0, best=True), now=make.later(5))
    make.make_run_event(run, lost, now=make.later(9))
    (found,) = summaries(Run.objects.all(), make.later(20), points=True)
    assert (found.measured, found.correct_share) == (2, 1.0)
    assert found.failures == {"SYSTEM_ERROR": 1}
    assert found.points[-1].evaluations == 1


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
    page = client.get("/runs/ablation/").content.decode()
    assert "1 run still going, paused or stopped by hand is left out" in page
    assert "No setting has been repeated" not in page
    table = client.get("/runs/ablation/?factor=verifiers&format=csv").content.decode()
    assert table.startswith("verifiers,rank,tied,runs,speedup")


def test_a_single_run_a_setting_is_no_result(client: Client) -> None:
    version = make.make_task_version()
    finished(500.0, version)
    finished(250.0, version, config=config(temperatures=(1.0,)))
    page = client.get("/runs/ablation/").content.decode()
    assert "No setting has been repeated" in page
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


def told(run: Run, *log: tuple[int, Any]) -> Run:
    """The run with these events, each after so many seconds."""
    for seconds, event in log:
        make.make_run_event(run, event, now=make.later(seconds))
    return run


def last(candidate: int, mode: Mode, latency_ns: float) -> events.Measured:
    """A kernel is ranked or audited, and is right."""
    return events.Measured(
        candidate=candidate, mode=mode, verdict="CORRECT", reason="", latency_ns=latency_ns
    )


def short(points: list[Point]) -> list[tuple[int, float, float]]:
    """Evaluations, seconds and times."""
    return [(each.evaluations, each.active_s, each.latency_ns) for each in points]


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


def ranked(**overrides: Any) -> Run:
    """A finished run of 3 evaluations whose best, candidate 2, was ranked and audited since."""
    run = make.make_run(status=Run.Status.FINISHED, **overrides)
    found: dict[str, Any] = {"state": "measured", "verdict": "CORRECT"}
    make.make_candidate(run, **found, latency_ns=1000.0)
    run.best = make.make_candidate(run, **found, latency_ns=450.0, speedup=3.0)
    make.make_candidate(run, state="measured", verdict="WRONG_RESULT")
    run.best_latency_ns, run.evaluations = 450.0, 3
    run.save()
    return told(
        run, (0, "started"), (10, measured(1, 1000.0, best=True)),
        (20, measured(2, 400.0, best=True)), (30, measured(3, 300.0, best=True)),
        (40, events.Searched(reason="all is asked", by_budget=True)),
        (140, last(2, Mode.RANKED, 430.0)), (240, last(2, Mode.AUDIT, 450.0)),
        (240, events.Finished(reason="all is asked", by_budget=True)),
    )  # fmt: skip


def test_what_follows_a_search_is_on_no_axis_and_times_are_what_the_run_says() -> None:
    run = ranked()
    assert short(curve(run)) == [(1, 10.0, 1000.0), (2, 20.0, 450.0), (3, 40.0, 450.0)]


def test_an_extended_run_goes_on_where_its_search_was() -> None:
    run = told(
        ranked(), (1000, events.Extended(budget=Budget(evaluations=9))),
        (1010, measured(4, 420.0, best=True)),
    )  # fmt: skip
    run.best, run.best_latency_ns = None, None
    assert short(curve(run))[-1] == (4, 50.0, 420.0)
