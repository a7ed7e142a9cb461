"""An estimate rehearses the strategy and stores nothing; and which kernel a run begins with."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from runs_app.core.errors import SubmissionError
from runs_app.models import LanguageModel, Run
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.services.estimate import Estimate, estimate_run
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


def test_rehearsed_votes_are_votes(world: World, model: Any) -> None:
    found = estimate(
        strategy="evolve",
        parameters={"generations": 1, "proposals": 2},
        verifiers={"names": ["compile", "memory", "numerics"], "survivors": 1},
        seed_kernel="naive",
    )
    assert found.calls == 2 + 2 * 3 * 2  # of each kernel three votes, each reflected on once
    assert found.evaluations == 1 + 1  # the seed, and the one that survives


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
        ("int x;\nconstexpr int A = 1;  // knob: 1\n" + make.SOURCE, "line 2: A needs two values"),
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


def test_a_translation_begins_without_a_kernel_unless_one_is_named(start: Start) -> None:
    wanted: dict[str, Any] = {"strategy": "translate", "task_version": make.make_task_version()}
    assert start(**wanted).problem["seed_source"] == ""
    assert start(**wanted, seed_kernel="naive").problem["seed_source"] == make.SOURCE
