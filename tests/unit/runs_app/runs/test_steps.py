"""A run goes from its seed to its end, step by step, and a step that comes twice does nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runs_app.models import LanguageModelCall, Run, Submission
from tests import factories as make
from tests.unit.runs_app.runs.conftest import World

pytestmark = pytest.mark.django_db

KERNEL = '```cpp\nextern "C" void scale(float* out, const float* x, int N) {{ out[{}] = x[0]; }}\n```'


def answer(run: Run, text: str | None = None) -> int:
    """Give every waiting call of the run its answer."""
    waiting = list(run.calls.filter(status="WAITING").order_by("number"))
    for call in waiting:
        LanguageModelCall.objects.filter(pk=call.pk).update(
            status="ANSWERED",
            response=text or KERNEL.format(call.number),
            tokens_in=100,
            tokens_out=50,
            cost_usd=0.0002,
            sent_at=make.NOW,
            ended_at=make.NOW,
        )
    return len(waiting)


def kinds(run: Run) -> list[str]:
    return list(run.events.order_by("seq").values_list("kind", flat=True))


def test_a_run_from_its_seed_to_its_end(start: Callable[..., Run], world: World) -> None:
    run = start()
    assert world.advance(run) == 2
    assert world.measure(run, 1000.0) == 1
    world.advance(run)
    assert run.seed_latency_ns == 1000.0
    assert run.calls.count() == 3
    assert len(world.calls) == 3
    assert answer(run) == 3
    world.advance(run)
    assert world.measure(run, 900.0) == 3
    world.advance(run)
    assert (run.status, run.reason) == ("FINISHED", "all is asked")
    assert run.best is not None
    assert (run.best.number, run.best_latency_ns) == (4, 898.0)
    assert (run.evaluations, run.tokens, run.candidates_made) == (4, 450, 4)
    assert run.usd == pytest.approx(0.0006)
    assert kinds(run)[:4] == ["started", "drafted", "measuring", "measured"]
    assert kinds(run)[-1] == "finished"
    trials = Submission.objects.filter(run=run)
    assert trials.count() == 4
    assert {trial.author for trial in trials} == {run.user}
