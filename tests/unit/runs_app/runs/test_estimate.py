"""An estimate rehearses the strategy, stays under the caps and stores nothing."""

from __future__ import annotations

from typing import Any

import pytest

from runs_app import services
from runs_app.evolve.strategies import STRATEGIES
from runs_app.models import Run
from tests import factories as make
from tests.unit.runs_app.runs.conftest import MODEL, World

pytestmark = pytest.mark.django_db

KNOBS = """
constexpr int TILE = 8;  // knob: 8 16 32
extern "C" void scale(float* out, const float* x, int N) { out[0] = TILE * x[0]; }
"""


def estimate(**changes: Any) -> services.Estimate:
    make.make_cpu()
    make.make_task_version()
    document = {
        "task": "scale",
        "device": "cpu",
        "strategy": "plain",
        "models": [MODEL],
        "budget": {"evaluations": 50},
        **changes,
    }
    request = services.read_run_request(document)
    return services.estimate_run(request=request, user=make.make_user())


def test_calls_and_evaluations_are_counted(world: World, model: Any) -> None:
    found = estimate(parameters={"asks": 7})
    assert (found.calls, found.evaluations) == (7, 8)
    assert 0 < found.usd_low < found.usd_high
    assert found.tokens > 7 * 300
    assert not Run.objects.exists()


def test_caps_bound_the_price(world: World, model: Any) -> None:
    found = estimate(parameters={"asks": 7}, budget={"usd": 0.01})
    assert found.usd_high <= 0.01


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


def test_bad_requests_name_the_field(world: World, model: Any) -> None:
    with pytest.raises(services.SubmissionError) as caught:
        estimate(seed_kernel="none")
    assert caught.value.field == "seed_kernel"


def test_rehearsed_votes_are_votes(world: World, model: Any) -> None:
    found = estimate(
        strategy="evolve",
        parameters={"generations": 1, "proposals": 2},
        verifiers={"names": ["compile", "memory", "numerics"]},
        seed_kernel="naive",
    )
    assert found.calls == 2 + 2 * 3 * 2  # of each kernel three votes, each reflected on once
    assert found.evaluations == 1 + 2
