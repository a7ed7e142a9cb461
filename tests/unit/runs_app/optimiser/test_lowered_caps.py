"""A budget that is made smaller binds what was asked and not sent."""

from __future__ import annotations

import pytest

from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.services.control import extend_run, pause_run
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("cap", ["usd", "tokens"])
@pytest.mark.parametrize("paused", [False, True])
def test_a_lowered_cap_takes_back_what_was_not_sent(
    start: Start, world: World, cap: str, paused: bool
) -> None:
    run = start(parameters={"asks": 4}, budget={"usd": 1.0, "tokens": 1_000_000})
    world.to_first_calls(run)
    first, second, *others = run.calls.order_by("number")
    run.calls.filter(pk=first.pk).update(status="SENT", sent_at=make.NOW, heard_at=make.NOW)
    if paused:
        pause_run(run=run, user=run.user, now=make.NOW)
    usd, tokens = first.worst_usd + second.worst_usd, first.worst_tokens + second.worst_tokens
    lowered = Budget(usd=usd + 1e-9) if cap == "usd" else Budget(tokens=tokens)
    extend_run(run=run, user=run.user, budget=lowered, now=make.NOW)
    statuses = list(run.calls.order_by("number").values_list("status", flat=True))
    assert statuses == ["SENT", "WAITING", *["FAILED"] * len(others)]
    assert len(others) >= 1
    assert {call.error_kind for call in run.calls.filter(status="FAILED")} == {"unsent"}
    world.advance(run)
    assert getattr(run, cap) <= getattr(lowered, cap)
    assert (run.status, run.failures) == ("PAUSED" if paused else "RUNNING", 0)
