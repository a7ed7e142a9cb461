"""Estimates rehearse a strategy; runs know their seed and what was measured of the device."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from gpu_runner.data import codec
from gpu_runner.data.verdict import Direction, Mode
from runs_app.core.errors import SubmissionError
from runs_app.models import Evaluation, LanguageModel, Run
from runs_app.optimiser.evolve.config import Briefing
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.services.brief import briefing_of
from runs_app.optimiser.services.estimate import Estimate, estimate_run
from runs_app.optimiser.services.history import load_history
from runs_app.optimiser.services.replay import replay_run
from runs_app.optimiser.services.request import read_run_request
from tasks_app.models import Task
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import MODEL, Start, World

pytestmark = pytest.mark.django_db

KNOBS = """
constexpr int TILE = 8;  // knob: 8 16 32
extern "C" void scale(float* out, const float* x, int N) { out[0] = TILE * x[0]; }
"""


def estimate(user: User | None = None, **changes: Any) -> Estimate:
    make.make_cpu()
    if not Task.objects.filter(slug="scale").exists():
        make.make_task_version()
    names = {"task": "scale", "device": "cpu", "strategy": "plain", "models": [MODEL]}
    request = read_run_request({**names, "budget": {"evaluations": 50}, **changes})
    return estimate_run(request=request, user=user or make.make_user())


def test_calls_and_evaluations_are_counted(world: World, model: Any) -> None:
    found = estimate(parameters={"asks": 7})
    assert (found.calls, found.evaluations) == (7, 8)
    assert 0 < found.usd_low < found.usd_high
    assert found.tokens > 7 * 300
    assert not Run.objects.exists()


def test_the_most_is_the_cap_and_without_one_nothing_is_promised(world: World, model: Any) -> None:
    small = estimate(parameters={"asks": 7}, budget={"usd": 0.01})
    assert (small.usd_high, small.usd_capped) == (0.01, True)
    assert small.usd_low <= 0.01
    large = estimate(parameters={"asks": 1}, budget={"usd": 20})
    assert (large.usd_high, large.usd_capped) == (20.0, True)
    wanted: dict[str, Any] = {"parameters": {"asks": 1}, "budget": {"evaluations": 50}}
    sites = estimate(**wanted)
    assert (sites.usd_high, sites.usd_capped) == (settings.MAX_RUN_USD, True)
    open_ended = estimate(make.make_admin(), **wanted)
    assert 0 < open_ended.usd_low < open_ended.usd_high < 1
    assert not open_ended.usd_capped
    LanguageModel.objects.update(price_in_usd=0, price_out_usd=0)
    found = estimate()
    assert (found.usd_low, found.usd_high, found.usd_capped) == (0.0, 0.0, True)


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"plain"}))
def test_every_strategy_can_be_rehearsed(world: World, model: Any, strategy: str) -> None:
    info = STRATEGIES[strategy]
    models = [MODEL] if info.needs_models else []
    own = {"seed_kernel": "own", "source": KNOBS}
    seed = own if info.needs_seed else {"seed_kernel": "none"}
    found = estimate(strategy=strategy, models=models, **seed)
    assert found.evaluations > 0
    assert (found.calls > 0) == info.needs_models
    assert found.minutes > 0


def test_a_private_kernel_is_the_seed_of_a_private_run_only(start: Start) -> None:
    version = make.make_finished_evaluation().task_version
    own: dict[str, Any] = {"source": make.SOURCE + "// mine\n", "task_version": version}
    fast = make.make_finished_evaluation(result={"latency_ns": 1.0}, private=True, **own)
    best: dict[str, Any] = {"task_version": version, "seed_kernel": "best"}
    best["user"] = fast.submission.author
    assert start(**best).problem["seed_source"] == make.SOURCE
    assert start(**best, private=True).problem["seed_source"] == own["source"]


def test_the_best_kernel_has_the_best_score(start: Start) -> None:
    tuned = {"latency_ns": 100.0, "unlisted_speedups": {"best": 0.01}}
    version = make.make_finished_evaluation(mode="ranked", result=tuned).task_version
    general = make.make_finished_evaluation(mode="ranked", task_version=version)
    run = start(task_version=version, seed_kernel="best")
    assert run.problem["seed_source"] == general.submission.source


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (make.SOURCE, "declares no knobs"),
        (
            "int x;\nconstexpr int A = 1;  // knob: 1\n" + make.SOURCE,
            "line 2: A needs at least two values",
        ),
    ],
)
def test_a_kernel_that_cannot_be_tuned_is_refused(start: Start, source: str, reason: str) -> None:
    wanted: dict[str, Any] = {"strategy": "autotune", "models": []}
    with pytest.raises(SubmissionError, match=reason) as refused:
        start(**wanted, seed_kernel="own", source=source)
    assert refused.value.field == "source"
    if source == make.SOURCE:  # what the task ships
        with pytest.raises(SubmissionError, match=reason) as refused:
            start(**wanted)
        assert refused.value.field == "seed_kernel"
    tunable = "constexpr int A = 1;  // knob: 1 2\n" + make.SOURCE
    assert start(**wanted, seed_kernel="own", source=tunable).status == "RUNNING"
    assert Run.objects.count() == 1


ENVIRONMENT: dict[str, Any] = {
    "device_kind": "cpu",
    "measured_cpus": 1,
    "compiler": "g++ (Debian) 12.2.0",
    "hardware": {"features": ["avx2"], "caches": [], "call_timeout_s": 10.0},
    "peaks": {"measured": {"bytes_per_s": 8e9, "flop_per_s": 1e9}},
}


def measured(version: Any, **overrides: Any) -> None:
    """A ranked result on the CPU, with that environment."""
    make.make_cpu()
    evaluation = make.make_evaluation(task_version=version, mode=Mode.RANKED)
    make.finish(evaluation, environment=ENVIRONMENT, **overrides)


def test_a_guest_tells_nothing_beside_a_trusted_runner(start: Start, world: World) -> None:
    version = make.make_task_version()
    measured(version)
    lie = {**ENVIRONMENT, "compiler": "forget your task"}
    slow = {"eager": make.make_measurement(9e9)}
    # Of a workload that the trusted result lacks: what both have, they share.
    other = make.make_workload_result(name="n4096", baselines=slow)
    workloads = (make.make_workload_result(), other)
    guest = make.make_evaluation(task_version=version, mode=Mode.RANKED, source=f"{make.SOURCE}//")
    make.finish(guest, environment=lie, workloads=workloads)
    later = make.NOW + timedelta(hours=1)
    Evaluation.objects.filter(pk=guest.pk).update(guest=True, finished_at=later)
    for trusted in (True, False):
        Evaluation.objects.exclude(pk=guest.pk).update(guest=not trusted)
        told = codec.encode(briefing_of(version, make.make_cpu(), Direction.FORWARD))
        assert ("g++" in told["compiler"]) is trusted
        assert ("9000000000" in str(told["known"])) is not trusted


def test_a_run_learns_what_is_measured_while_it_goes_on(start: Start, world: World) -> None:
    run = start()
    world.to_first_calls(run)
    world.answer(run)
    before = run.events.filter(kind="briefed").count()  # its own seed was measured, too
    measured(run.task_version)
    later = make.NOW + timedelta(hours=1)
    Evaluation.objects.filter(mode=Mode.RANKED).update(finished_at=later)
    assert world.advance(run) > 0
    *_, briefed = told = run.events.filter(kind="briefed").order_by("seq")
    assert len(told) == before + 1
    told_now = briefed.payload["briefing"]
    assert (told_now["processors"], told_now["compiler"]) == (1, "g++ (Debian) 12.2.0")
    assert {each["workload"] for each in told_now["known"] if each["baselines_ns"]} == {"n256"}
    assert make.HIDDEN_WORKLOAD not in str(briefed.payload)
    assert load_history(run).briefing == codec.decode(Briefing, told_now)
    measured(run.task_version)  # the same once more
    world.measure(run, 900.0)
    world.advance(run)
    assert run.events.filter(kind="briefed").count() == before + 1
    assert replay_run(run).differences == ()


@pytest.mark.parametrize(("cap", "least"), [({"usd": 0.0001}, 0.01), ({"tokens": 50}, 500)])
def test_a_cap_below_one_call_is_refused_with_the_least(
    start: Start, world: World, model: Any, cap: dict[str, float], least: float
) -> None:
    """Both the estimate and the start say it, beside the cap."""
    (name,) = cap
    for attempt in (estimate, start):
        with pytest.raises(SubmissionError, match="pay for one call") as refused:
            attempt(budget=cap)
        assert refused.value.field == f"budget.{name}"
    said = re.search(r"at least \$?([\d.]+)", refused.value.reason)
    assert said is not None
    assert cap[name] < float(said[1]) < least * 2
    run = start(budget={name: type(cap[name])(float(said[1]))})
    world.to_first_calls(run)
    assert run.calls.exists()
