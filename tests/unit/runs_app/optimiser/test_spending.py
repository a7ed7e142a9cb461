"""Limits on money: of a run, of a user's day, and of what a run may still send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from runs_app.core.errors import QuotaExceeded, SubmissionError
from runs_app.models import LanguageModel, Run
from runs_app.optimiser.evolve.config import Budget
from runs_app.optimiser.selectors.spending import held_usd, money_limits
from runs_app.optimiser.services.control import extend_run, pause_run, resume_run, stop_run
from runs_app.optimiser.services.estimate import estimate_run
from runs_app.optimiser.services.history import budget_of
from runs_app.optimiser.services.request import read_run_request
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start, World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def limits(settings: Any) -> None:
    """Ten dollars a run, fifteen a day."""
    settings.MAX_RUN_USD, settings.MAX_USD_PER_USER_DAY = 10.0, 15.0


@pytest.fixture
def ada() -> User:
    """Somebody with an account."""
    return make.make_user(username="ada")


@pytest.fixture
def begin(start: Start, ada: User) -> Start:
    """Starts a run of Ada's under a cap in dollars, all on one task."""
    version = make.make_task_version()

    def started(usd: float | None, **overrides: Any) -> Run:
        budget = {"usd": usd, "evaluations": 50}
        return start(**{"user": ada, "task_version": version, "budget": budget, **overrides})

    return started


def refused(act: Callable[..., Any], *args: Any, **fields: Any) -> SubmissionError:
    """The refusal, which names the cap on money."""
    with pytest.raises(SubmissionError) as caught:
        act(*args, **fields)
    assert caught.value.field == "budget.usd"
    return caught.value


def pay(run: Run, usd: float, at_s: float = 0) -> None:
    """Let the run's first call have cost that much."""
    first = run.calls.order_by("number")[:1].get()
    ended = {"status": "ANSWERED", "ended_at": make.later(at_s), "cost_usd": usd}
    run.calls.filter(pk=first.pk).update(**ended)


def test_a_run_without_a_cap_gets_the_sites_or_what_is_left(
    begin: Start,
) -> None:
    assert "at most 10" in refused(begin, 10.5).reason
    assert not Run.objects.exists()
    assert budget_of(begin(None)) == Budget(usd=10.0, evaluations=50)
    assert budget_of(begin(None)) == Budget(usd=5.0, evaluations=50)
    refused(begin, None)  # nothing is left


def test_caps_of_running_runs_count_for_the_day(begin: Start, ada: User, start: Start) -> None:
    first = begin(9.0)
    error = refused(begin, 6.5)
    assert isinstance(error, QuotaExceeded)
    assert "$6.50" in error.reason
    assert "$6.00 is left" in error.reason
    assert begin(6.0).user == ada
    assert start(task_version=first.task_version).user != ada


def test_the_day_counts_what_was_or_may_be_paid(begin: Start, ada: User, world: World) -> None:
    run = begin(9.0)
    world.to_first_calls(run)
    pay(run, 2.0)
    assert held_usd(ada, make.NOW) == pytest.approx(9.0)
    pause_run(run=run, user=ada, now=make.NOW)
    open_usd = sum(run.calls.filter(ended_at=None).values_list("worst_usd", flat=True))
    assert open_usd > 0
    assert held_usd(ada, make.NOW) == pytest.approx(2.0 + open_usd)
    stop_run(run=run, user=ada, now=make.NOW)
    assert held_usd(ada, make.later(86_399)) == pytest.approx(2.0)
    assert held_usd(ada, make.later(86_401)) == 0


def test_resuming_needs_what_the_run_may_still_cost(begin: Start, ada: User, world: World) -> None:
    run = begin(9.0)
    world.to_first_calls(run)
    pay(run, 4.0)
    pause_run(run=run, user=ada, now=make.NOW)
    other = begin(8.0)
    error = refused(resume_run, run=run, user=ada, now=make.NOW)
    assert ("$5.00" in error.reason, "$3.00 is left" in error.reason) == (True, True)
    extend_run(run=run, user=ada, budget=Budget(usd=7.0), now=make.NOW)
    assert resume_run(run=run, user=ada, now=make.NOW).status == "RUNNING"
    stop_run(run=other, user=ada, now=make.NOW)


def test_extending_keeps_to_the_limits(begin: Start, ada: User, settings: Any) -> None:
    run = begin(5.0)
    begin(8.0)

    def extend(usd: float | None, user: User = ada) -> Budget:
        budget = Budget(usd=usd, evaluations=9)
        return budget_of(extend_run(run=run, user=user, budget=budget, now=make.NOW))

    assert "at most 10" in refused(extend, 11.0).reason
    assert "$7.00 is left" in refused(extend, 8.0).reason
    assert "$10.00" in refused(extend, None).reason
    assert extend(7.0).usd == 7.0
    settings.MAX_USD_PER_USER_DAY = 1.0
    assert extend(6.0).usd == 6.0
    admin = make.make_admin()
    assert extend(400.0, admin).usd == 400.0
    assert budget_of(begin(99.0, user=admin)).usd == 99.0
    assert money_limits(admin, make.NOW) is None


def test_a_run_of_before_the_limits_asks_for_a_cap(begin: Start, ada: User) -> None:
    run = begin(5.0)
    pause_run(run=run, user=ada, now=make.NOW)
    Run.objects.update(config={**run.config, "budget": {"evaluations": 9}})
    error = refused(resume_run, run=run, user=ada, now=make.NOW)
    assert "add one first" in error.reason


def test_what_costs_nothing_is_not_limited(begin: Start, settings: Any) -> None:
    settings.MAX_RUN_USD = settings.MAX_USD_PER_USER_DAY = 0.0
    refused(begin, 0.01)
    LanguageModel.objects.update(price_in_usd=0, price_out_usd=0)
    run = begin(None)
    assert budget_of(run).usd is None
    assert begin(99.0).status == "RUNNING"
    assert held_usd(run.user, make.NOW) == 0


def test_no_cap_holds_where_a_price_is_unknown(begin: Start, settings: Any) -> None:
    LanguageModel.objects.update(price_in_usd=None, price_out_usd=None)
    assert "price of writer-1 is unknown" in refused(begin, 1.0).reason
    run = begin(None)
    assert budget_of(run).usd is None
    LanguageModel.objects.create(
        name="paid", base_url="http://127.0.0.1:9/v1", price_in_usd=1, price_out_usd=1,
        created_at=make.NOW,
    )  # fmt: skip
    for usd, advice in ((1.0, "leave the cap out"), (None, "choose only models without")):
        reason = refused(begin, usd, models=["writer-1", "paid"]).reason
        assert ("writer-1" in reason, "paid" in reason, advice in reason) == (True, False, True)


def test_an_estimate_knows_the_limit_of_a_run(begin: Start, ada: User) -> None:
    task = begin(1.0).task_version.task.slug
    wanted = {"task": task, "device": "cpu", "strategy": "plain", "models": ["writer-1"]}

    def estimate(usd: float | None) -> float:
        budget = {"usd": usd, "evaluations": 9}
        request = read_run_request({**wanted, "budget": budget})
        return estimate_run(request=request, user=ada).usd_high

    assert 0 < estimate(None) <= 10
    refused(estimate, 10.5)


@pytest.mark.parametrize("cap", ["usd", "tokens"])
@pytest.mark.parametrize("paused", [False, True])
def test_a_lowered_cap_takes_calls_back(start: Start, world: World, cap: str, paused: bool) -> None:
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
